-- The cells of version 2; the version is NULL if the text was sealed again in place since.
insert into internal.landed_cells by name
select
    cells.*,
    case when p.partition_version is not null then 1 end as partition_version
from former_cells as cells
left join internal.landed_partitions as p
    on
        cells.source = p.source
        and cells.month is not distinct from p.month
        and cells.partition_digest = p.partition_digest;
drop table former_cells;
