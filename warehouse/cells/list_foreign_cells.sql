-- The cells whose losses came from elsewhere.
select
    model,
    source,
    month,
    protocol
from landed_cells
where partition_digest is null or scoring is null;
