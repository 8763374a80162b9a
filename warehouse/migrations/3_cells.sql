-- The cells of version 2; of those whose text was sealed anew since, in its place, it is gone.
insert into landed_cells by name
select
    cells.*,
    case when p.partition_version is not null then 1 end as partition_version
from former_cells as cells
left join landed_partitions as p
    on
        cells.source = p.source
        and cells.month is not distinct from p.month
        and cells.partition_digest = p.partition_digest;
drop table former_cells;
