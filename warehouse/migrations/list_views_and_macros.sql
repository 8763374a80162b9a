-- Statements that drop every view and macro of the database: those of our files are made anew, and
-- those of former versions are gone.
select 'drop view "' || replace(view_name, '"', '""') || '"' as statement
from duckdb_views()
where not internal and not temporary and database_name = current_database()
union all
select distinct
    'drop macro ' || case when function_type = 'table_macro' then 'table ' else '' end
    || '"' || replace(function_name, '"', '""') || '"' as statement
from duckdb_functions()
where
    not internal
    and function_type in ('macro', 'table_macro')
    and database_name = current_database();
