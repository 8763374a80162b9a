-- Public views, tables and macros for analysts, with their comments.
-- name: name of the view, table or macro
-- kind: view, table or macro
-- comment: what it has
-- sql: statement that creates it
select
    if(schema_name = 'main', view_name, schema_name || '.' || view_name) as name,
    'view' as kind,
    comment,
    sql
from duckdb_views()
where schema_name not in ('internal', 'materialised', 'old') and not internal and not temporary
union all
select
    table_name as name,
    'table' as kind,
    comment,
    sql
from duckdb_tables()
where schema_name = 'main' and not internal and not temporary
union all
select
    d.name,
    'macro' as kind,
    d.parameters || ': ' || d.meaning as comment,
    'create macro ' || d.name || d.parameters || ' as '
    || if(f.function_type = 'table_macro', 'table ', '') || f.macro_definition as sql
from dictionary as d
inner join duckdb_functions() as f
    on
        f.function_name = regexp_replace(d.name, '^papers\.', '')
        and f.schema_name = if(d.name like 'papers.%', 'papers', 'main')
        and f.macro_definition is not null and not f.internal
where
    d.kind = 'macro' and f.database_name = current_database()
    and (f.function_type = 'table_macro' or d.name like 'bits_per_%')  -- others are for views
order by name
