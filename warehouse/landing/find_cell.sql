-- Whether one cell is landed, as these very losses: not if what is landed was scored at another
-- time, as after a drift that the canary has found.
select 1 as is_landed
from landed_cells as cells
left join cell_costs as costs
    on
        cells.model = costs.model
        and cells.source = costs.source
        and cells.month is not distinct from costs.month
        and cells.protocol = costs.protocol
where
    cells.model = $model
    and cells.revision = $revision
    and cells.source = $source
    and cells.month is not distinct from cast($month as date)
    and cells.protocol = $protocol
    and cells.partition_digest = $partition_digest
    and cells.scoring = $scoring
    and coalesce(costs.scored_at = cast($scored_at as timestamp), true);
