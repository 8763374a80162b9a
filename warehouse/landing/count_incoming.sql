-- How many rows and cells are incoming, and in how many documents a chunk comes more than once.
with cells as (
    select
        sum(num_chunks) as num_rows,
        count(*) filter (where has_twins) as num_documents_with_twins
    from incoming_documents
    group by model, source, month, protocol
)

select
    coalesce(sum(num_rows), 0) as num_rows,
    count(*) as num_cells,
    coalesce(sum(num_documents_with_twins), 0) as num_documents_with_twins
from cells;
