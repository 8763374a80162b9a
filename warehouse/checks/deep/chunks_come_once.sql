-- Chunks that are landed more than once: a double load, which counts their losses twice.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
-- As landing/find_duplicate.sql: a sum of powers of two differs from their bitwise or exactly where
-- a power comes twice.
with marks as (
    select
        model,
        source,
        month,
        protocol,
        document_id,
        chunk_index,
        cast(1 as bigint) << (chunk_index % 62) as mark
    from chunk_losses
    where chunk_index >= 0
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
    losses.model,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index,
    count(*) as num_rows
from chunk_losses as losses
semi join suspects
    on
        losses.model = suspects.model
        and losses.source = suspects.source
        and losses.month is not distinct from suspects.month
        and losses.protocol = suspects.protocol
        and losses.document_id = suspects.document_id
group by
    losses.model,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index
having count(*) > 1;
