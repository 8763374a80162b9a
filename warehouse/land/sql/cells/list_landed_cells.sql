-- The landed cells of one model: one row per cell, with the digests of the inputs of its losses.
select
    cells.source,
    cells.month,
    cells.protocol,
    cells.revision,
    cells.partition_digest,
    cells.scoring,
    costs.scored_at
from internal.landed_cells as cells
left join cell_costs as costs
    on
        cells.model = costs.model
        and cells.source = costs.source
        and cells.month is not distinct from costs.month
        and cells.protocol = costs.protocol
where cells.model = $model;
