-- Time, memory and device of scoring one cell.
select
    device,
    dtype,
    batch_tokens,
    versions
from cell_costs
where
    model = $model
    and revision = $revision
    and source = $source
    and month is not distinct from cast($month as date)
    and protocol = $protocol;
