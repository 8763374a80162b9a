-- Chunks with more than one row: they were loaded twice, so their losses count twice.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.

-- As group_documents in land/losses.sql: a sum of powers of two differs from their bitwise OR if
-- and only if a power is duplicate. Documents are compared by hash first, then by id.
with cells as materialized (
    select
        model,
        revision,
        source,
        month,
        protocol,
        cast(row_number() over () as integer) as cell
    from internal.landed_cells
),

marks as (
    select
        cells.cell,
        hash(losses.document_id) as document,
        losses.chunk_index // 62 as block,
        cast(1 as bigint) << (losses.chunk_index % 62) as mark
    from chunk_losses as losses
    inner join cells
        on
            losses.model = cells.model
            and losses.revision = cells.revision
            and losses.source = cells.source
            and losses.month is not distinct from cells.month
            and losses.protocol = cells.protocol
    where losses.chunk_index >= 0
),

suspects as (
    select
        cell,
        document
    from marks
    group by cell, document, block
    having sum(mark) <> bit_or(mark)
)

select
    losses.model,
    losses.revision,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index,
    count(*) as num_rows
from chunk_losses as losses
inner join cells
    on
        losses.model = cells.model
        and losses.revision = cells.revision
        and losses.source = cells.source
        and losses.month is not distinct from cells.month
        and losses.protocol = cells.protocol
semi join suspects
    on
        cells.cell = suspects.cell
        and hash(losses.document_id) = suspects.document
group by
    losses.model,
    losses.revision,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index
having count(*) > 1;
