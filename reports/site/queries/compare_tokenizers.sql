-- What a token is to each model.
select
    model,
    vocabulary_size,
    start_token,
    bytes_per_token,
    is_lossy,
    num_documents
from tokenizer_comparison
where vocabulary_size is not null
order by bytes_per_token desc nulls last, model asc
