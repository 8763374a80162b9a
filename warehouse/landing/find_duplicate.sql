-- The first chunk that is staged more than once.
-- Chunks are looked at 62 at a time: a sum of powers of two differs from their bitwise or exactly
-- where a power comes twice. That is a third of the cost of grouping by chunk.
with marks as (
    select
        model,
        source,
        month,
        protocol,
        document_id,
        chunk_index,
        cast(1 as bigint) << (chunk_index % 62) as mark
    from incoming
),

suspects as (
    select
        model,
        source,
        month,
        protocol,
        document_id
    from marks
    group by model, source, month, protocol, document_id, chunk_index // 62
    having sum(mark) <> bit_or(mark)
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
