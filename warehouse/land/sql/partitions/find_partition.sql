-- The digest of one landed partition.
select partition_digest
from internal.landed_partitions
where source = $source and month is not distinct from cast($month as date);
