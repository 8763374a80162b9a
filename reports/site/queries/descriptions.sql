-- What each column of a view or table is.
select
    table_name as name,
    column_name,
    comment
from duckdb_columns()
where not internal and database_name = current_database() and comment is not null
order by table_name, column_index
