-- The partitions of version 2: there were no later versions of a text.
insert into landed_partitions by name
select
    *,
    1 as partition_version
from former_partitions;
drop table former_partitions;
