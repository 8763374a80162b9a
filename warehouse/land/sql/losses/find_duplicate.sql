-- The first duplicate chunk, searched only in documents that may have one.
with suspects as (
    select
        cells.*,
        d.document_id
    from incoming_documents as d
    inner join incoming_cells as cells on d.cell = cells.cell
    where d.may_have_twins
)

select
    i.model,
    i.source,
    i.month,
    i.protocol,
    i.document_id,
    i.chunk_index,
    count(*) as num_rows
from incoming as i
semi join suspects as s
    on
        i.model = s.model
        and i.source = s.source
        and i.month is not distinct from s.month
        and i.protocol = s.protocol
        and i.document_id = s.document_id
group by i.model, i.source, i.month, i.protocol, i.document_id, i.chunk_index
having count(*) > 1
order by i.model, i.source, i.month, i.protocol, i.document_id, i.chunk_index
limit 1;
