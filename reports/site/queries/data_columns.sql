-- Columns of public views, tables and table macros; the two ends of an interval are one entry.
with described as (
    select
        name,
        column_name,
        rowid as column_index,
        meaning || coalesce(' [' || unit || ']', '') as meaning
    from dictionary
    where kind = 'column'
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
