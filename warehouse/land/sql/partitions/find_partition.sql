-- The digest and the regime of one landed partition.
select
    partition_digest,
    regime
from internal.landed_partitions
where source = $source and month is not distinct from cast($month as date);
