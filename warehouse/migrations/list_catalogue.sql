-- What decides whether views can be read: the columns of all tables and views, and the parameters
-- of macros. DuckDB writes the text of a view in another form after each start, so it is left out.
-- Parameter: kept, the schema that only snapshots have.
select
    schema_name || '.' || table_name as relation,
    column_name,
    data_type
from duckdb_columns()
where not internal and database_name = current_database() and schema_name <> $kept
union all
select
    schema_name || '.' || function_name as relation,
    array_to_string(parameters, ', ') as column_name,
    function_type as data_type
from duckdb_functions()
where not internal and database_name = current_database()
order by all;
