-- How many rows are incoming, and in how many documents a chunk may come more than once.
select
    coalesce(sum(num_chunks), 0) as num_rows,
    count(*) filter (where may_have_twins) as num_documents_with_twins
from incoming_documents;
