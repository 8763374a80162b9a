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
