-- Columns of public views and tables; the two ends of an interval are one entry.
with described as (
    select
        if(schema_name = 'main', table_name, schema_name || '.' || table_name) as name,
        column_name,
        column_index,
        coalesce(comment, data_type) as meaning
    from duckdb_columns()
    where schema_name in ('main', 'papers') and not internal and database_name = current_database()
),

compared as (
    select
        *,
        lead(column_name) over (partition by name order by column_index) as next_column,
        -- What the meaning of the other end would be.
        replace(replace(meaning, 'lower end', 'upper end'), '_low', '_high') as upper_meaning,
        replace(replace(meaning, 'upper end', 'lower end'), '_high', '_low') as lower_meaning,
        lead(meaning) over (partition by name order by column_index) as next_meaning,
        lag(meaning) over (partition by name order by column_index) as former_meaning
    from described
),

paired as (
    select
        *,
        meaning <> upper_meaning and next_meaning = upper_meaning as is_lower,
        meaning <> lower_meaning and former_meaning = lower_meaning as is_upper
    from compared
)

select
    name,
    if(is_lower, column_name || ', ' || next_column, column_name) as column_name,
    if(is_lower, replace(meaning, 'lower end', 'ends'), meaning) as meaning
from paired
where is_upper is not true
order by name, column_index
