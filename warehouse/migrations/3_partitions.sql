-- The partitions of version 2, which had only one version of each text.
insert into internal.landed_partitions by name
select
    *,
    1 as partition_version
from former_partitions;
drop table former_partitions;
