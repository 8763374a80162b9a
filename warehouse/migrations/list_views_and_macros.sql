-- Statements that drop every view and macro of the database, before all present ones are created.
-- This also removes objects of former versions.
select 'drop view "' || schema_name || '"."' || replace(view_name, '"', '""') || '"' as statement
from duckdb_views()
where not internal and not temporary and database_name = current_database()
union all
select distinct
    'drop macro ' || case when function_type = 'table_macro' then 'table ' else '' end
    || '"' || schema_name || '"."' || replace(function_name, '"', '""') || '"' as statement
from duckdb_functions()
where
    not internal
    and function_type in ('macro', 'table_macro')
    and database_name = current_database();
