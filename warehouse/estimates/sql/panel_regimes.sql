-- The regime of each landed month, in the order of the months.
select
    source,
    month,
    regime
from internal.landed_partitions
where month is not null
order by source, month;
