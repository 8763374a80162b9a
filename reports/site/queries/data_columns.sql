-- Columns of public views and tables.
select
    table_name as name,
    column_name,
    data_type,
    comment
from duckdb_columns()
where schema_name = 'main' and not internal and database_name = current_database()
order by table_name, column_index
