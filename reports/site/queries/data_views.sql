-- Public views and tables, with their comments.
-- name: name of the view or table
-- kind: view, table or macro
-- comment: what it has
-- sql: statement that creates it
select
    if(schema_name = 'main', view_name, schema_name || '.' || view_name) as name,
    'view' as kind,
    comment,
    sql
from duckdb_views()
where schema_name in ('main', 'papers') and not internal and not temporary
union all
select
    table_name as name,
    'table' as kind,
    comment,
    sql
from duckdb_tables()
where schema_name = 'main' and not internal and not temporary
order by name
