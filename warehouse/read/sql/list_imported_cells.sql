-- The cells with imported losses.
select
    model,
    source,
    month,
    protocol
from internal.landed_cells
where partition_digest is null or scoring is null;
