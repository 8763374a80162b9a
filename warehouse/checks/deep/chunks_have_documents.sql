-- Chunks of cells scored by tidemark whose document is not in the scored partition.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with cells as (
    select
        landed.model,
        landed.source,
        landed.month,
        landed.protocol
    from internal.landed_cells as landed
    inner join internal.landed_partitions as p
        on
            landed.source = p.source
            and landed.month is not distinct from p.month
            and landed.partition_digest = p.partition_digest
    -- A solid archive has a single row without a document.
    anti join protocols
        on
            landed.protocol = protocols.protocol
            and json_extract_string(protocols.definition, '$.layout') = 'solid'
)

select
    losses.model,
    losses.source,
    losses.month,
    losses.protocol,
    losses.document_id,
    losses.chunk_index
from chunk_losses as losses
semi join cells
    on
        losses.model = cells.model
        and losses.source = cells.source
        and losses.month is not distinct from cells.month
        and losses.protocol = cells.protocol
anti join documents as d
    on
        losses.source = d.source
        and losses.month is not distinct from d.month
        and losses.document_id = d.document_id;
