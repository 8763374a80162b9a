-- Migration of databases of schema versions 1 to 4, in the order in which the statements run.
-- In: tables of a former version. Out: the tables of the present version have their rows.

-- name: rename_cells_of_1
-- From version 1: store the sums of cells that views used to compute from chunk_losses (ADR 0015).
-- The statements of landing compute the sums, after landed_cells has been created again.
alter table schema_version add column definitions varchar;
alter table landed_cells rename to former_cells;

-- name: rename_tables_of_2
-- From version 2: cells and partitions state the version of the text (ADR 0018). Former rows are
-- copied into the present tables after their creation. Cells of version 1 are former rows already.
alter table if exists landed_cells rename to former_cells;
alter table landed_partitions rename to former_partitions;

-- name: list_moves
-- From version 3: bookkeeping tables move from schema main into schema internal. The query returns
-- the statements that move each table of both schemas, after the new tables are created.
select
    'delete from internal.' || former.table_name
    || '; insert into internal.' || former.table_name
    || ' by name from main.' || former.table_name
    || '; drop table main.' || former.table_name as statement
from duckdb_tables() as former
inner join duckdb_tables() as today
    on former.table_name = today.table_name and former.database_name = today.database_name
where
    former.database_name = current_database()
    and not former.temporary
    and not today.temporary
    and former.schema_name = 'main'
    and today.schema_name = 'internal'
order by former.table_name;

-- name: insert_former_partitions
-- The partitions of version 2, which had only one version of each text.
insert into internal.landed_partitions by name
select
    *,
    1 as partition_version
from former_partitions;
drop table former_partitions;

-- name: touch_former_cells
-- The cells of versions 1 and 2; the version is NULL if the text was sealed again in place since.
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
drop table former_cells;

-- name: insert_former_cells
-- Of version 2: cells have their sums.
insert into internal.landed_cells by name
select *
from touched;

-- name: keep_provenance
-- Of version 1: cells keep their provenance. No cell has a new one.
create temp table provenance as
select *
from touched
where false;

-- name: read_landed
-- Define incoming losses as all landed losses, to compute their sums.
create or replace temp view incoming as
select *
from chunk_losses;

-- name: drop_provenance
-- Landing registers data under this name.
drop table provenance;
