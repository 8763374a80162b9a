-- Cells whose counts differ from their rows in chunk_losses, and rows without a cell.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with counts as (
    select
        model,
        revision,
        source,
        month,
        protocol,
        count(*) as num_chunks,
        count(*) - count(nll_nats) as num_unmeasured
    from chunk_losses
    group by model, revision, source, month, protocol
)

select
    coalesce(cells.model, counts.model) as model,
    coalesce(cells.source, counts.source) as source,
    coalesce(cells.month, counts.month) as month,
    coalesce(cells.protocol, counts.protocol) as protocol,
    cells.num_chunks as num_chunks_recorded,
    counts.num_chunks as num_chunks_landed
from internal.landed_cells as cells
full outer join counts
    on
        cells.model = counts.model
        and cells.revision = counts.revision
        and cells.source = counts.source
        and cells.month is not distinct from counts.month
        and cells.protocol = counts.protocol
where
    cells.num_chunks is distinct from counts.num_chunks
    or cells.num_unmeasured is distinct from counts.num_unmeasured;
