-- The first chunk that comes more than once, of the documents where one does.
with suspects as (
    select *
    from incoming_documents
    where has_twins
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
semi join suspects as d
    on
        i.model = d.model
        and i.source = d.source
        and i.month is not distinct from d.month
        and i.protocol = d.protocol
        and i.document_id = d.document_id
group by i.model, i.source, i.month, i.protocol, i.document_id, i.chunk_index
having count(*) > 1
order by i.model, i.source, i.month, i.protocol, i.document_id, i.chunk_index
limit 1;
