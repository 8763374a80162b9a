-- Documents whose characters or bytes differ from the sums over their chunks, in cells scored by
-- tidemark under a protocol that covers whole documents: text is counted twice or without its loss.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.

-- Cells and documents are numbered first: grouping by names costs three times as much.
with covering as (
    select protocol
    from protocols
    where
        json_extract_string(definition, '$.layout') in ('disjoint', 'sliding', 'rolling')
        and json_extract_string(definition, '$.max_chars') is null
        and json_extract_string(definition, '$.joined_by') is null
),

cells as materialized (
    select
        landed.model,
        landed.source,
        landed.month,
        landed.protocol,
        cast(row_number() over () as integer) as cell
    from internal.landed_cells as landed
    semi join covering on landed.protocol = covering.protocol
    inner join internal.landed_partitions as p
        on
            landed.source = p.source
            and landed.month is not distinct from p.month
            and landed.partition_digest = p.partition_digest
),

numbered as materialized (
    select
        *,
        cast(row_number() over () as integer) as document
    from documents
),

sums as (
    select
        cells.cell,
        d.document,
        sum(losses.num_chars) as num_chars,
        sum(losses.num_bytes) as num_bytes
    from chunk_losses as losses
    inner join cells
        on
            losses.model = cells.model
            and losses.source = cells.source
            and losses.month is not distinct from cells.month
            and losses.protocol = cells.protocol
    inner join numbered as d
        on
            losses.source = d.source
            and losses.month is not distinct from d.month
            and losses.document_id = d.document_id
    group by cells.cell, d.document
)

select
    cells.model,
    cells.source,
    cells.month,
    cells.protocol,
    d.document_id,
    sums.num_chars as num_chars_of_chunks,
    d.num_chars as num_chars_of_document,
    sums.num_bytes as num_bytes_of_chunks,
    d.num_bytes as num_bytes_of_document
from sums
inner join numbered as d on sums.document = d.document
inner join cells on sums.cell = cells.cell
where sums.num_chars <> d.num_chars or sums.num_bytes <> d.num_bytes;
