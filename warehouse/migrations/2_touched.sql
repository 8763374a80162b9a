-- The cells of version 1; they keep their provenance. No cell has a new one.
create or replace temp table touched as
select
    cells.*,
    case when p.partition_version is not null then 1 end as partition_version
from former_cells as cells
left join internal.landed_partitions as p
    on
        cells.source = p.source
        and cells.month is not distinct from p.month
        and cells.partition_digest = p.partition_digest;

create temp table provenance as
select *
from touched
where false;

drop table former_cells;
