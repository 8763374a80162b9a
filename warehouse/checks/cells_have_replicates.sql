-- Cells with replicates but not 200 of them; cells without replicates whose measured chunks have
-- two or more clusters; replicates without a cell.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with counts as (
    select
        model,
        source,
        month,
        protocol,
        count(*) as num_replicates
    from internal.cell_replicates
    group by model, source, month, protocol
),

cells as (
    select
        coalesce(landed.model, counts.model) as model,
        coalesce(landed.source, counts.source) as source,
        coalesce(landed.month, counts.month) as month,
        coalesce(landed.protocol, counts.protocol) as protocol,
        landed.model is not null as is_landed,
        counts.num_replicates
    from internal.landed_cells as landed
    full outer join counts
        on
            landed.model = counts.model
            and landed.source = counts.source
            and landed.month is not distinct from counts.month
            and landed.protocol = counts.protocol
),

bare_cells as (
    select
        losses.model,
        losses.source,
        losses.month,
        losses.protocol
    from chunk_losses as losses
    semi join cells
        on
            losses.model = cells.model
            and losses.source = cells.source
            and losses.month is not distinct from cells.month
            and losses.protocol = cells.protocol
            and cells.num_replicates is null
    left join documents as d
        on
            losses.source = d.source
            and losses.month is not distinct from d.month
            and losses.document_id = d.document_id
    where losses.nll_nats is not null
    group by losses.model, losses.source, losses.month, losses.protocol
    having count(distinct coalesce(d.cluster_id, losses.document_id)) > 1
)

select
    cells.model,
    cells.source,
    cells.month,
    cells.protocol,
    cells.num_replicates
from cells
left join bare_cells as bare
    on
        cells.model = bare.model
        and cells.source = bare.source
        and cells.month is not distinct from bare.month
        and cells.protocol = bare.protocol
where not cells.is_landed or cells.num_replicates <> 200 or bare.model is not null;
