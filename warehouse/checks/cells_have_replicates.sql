-- Cells with measured chunks that do not have 200 bootstrap replicates, and replicates without one.
with counts as (
    select
        model,
        source,
        month,
        protocol,
        count(*) as num_replicates
    from cell_replicates
    group by model, source, month, protocol
),

measured as (
    select *
    from landed_cells
    where num_chunks > num_unmeasured
)

select
    coalesce(cells.model, counts.model) as model,
    coalesce(cells.source, counts.source) as source,
    coalesce(cells.month, counts.month) as month,
    coalesce(cells.protocol, counts.protocol) as protocol,
    counts.num_replicates
from measured as cells
full outer join counts
    on
        cells.model = counts.model
        and cells.source = counts.source
        and cells.month is not distinct from counts.month
        and cells.protocol = counts.protocol
where cells.model is null or counts.num_replicates is distinct from 200;
