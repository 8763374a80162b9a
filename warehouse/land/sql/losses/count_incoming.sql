-- The number of incoming rows, and the number of documents that may have duplicate chunks.
select
    coalesce(sum(num_chunks), 0) as num_rows,
    count(*) filter (where may_have_twins) as num_documents_with_twins
from incoming_documents;
