-- The partitions whose documents have landed.
select
    source,
    month,
    partition_digest
from landed_partitions
order by source, month;
