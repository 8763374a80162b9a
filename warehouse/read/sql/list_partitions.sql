-- The partitions with landed documents.
select
    source,
    month,
    partition_digest
from internal.landed_partitions
order by source, month;
