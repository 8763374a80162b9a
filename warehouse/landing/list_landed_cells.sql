-- What is landed of one model: one row per cell, with what its losses follow from.
select
    cells.source,
    cells.month,
    cells.protocol,
    cells.revision,
    cells.partition_digest,
    cells.scoring,
    costs.scored_at
from landed_cells as cells
left join cell_costs as costs
    on
        cells.model = costs.model
        and cells.source = costs.source
        and cells.month is not distinct from costs.month
        and cells.protocol = costs.protocol
where cells.model = $model;
