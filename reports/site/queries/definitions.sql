-- How to make each view and table macro again in the temporary schema: the head and the body.
select
    view_name as name,
    'view ' || view_name || ' as ' as head,
    sql[position(' AS ' in sql) + 4:] as body
from duckdb_views()
where not internal and not temporary and schema_name <> 'old'
union all
select
    function_name as name,
    format('macro {}({}) as table ', function_name, array_to_string(parameters, ', ')) as head,
    macro_definition as body
from duckdb_functions()
where function_type = 'table_macro' and not internal and schema_name <> 'old'
