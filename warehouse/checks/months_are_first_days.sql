-- Months that are not the first day of a month: views would split such a month in two.
-- Do: Land their file again, with months as first days, using --replace.
with months as (
    select
        'landed_cells' as found_in,
        source as name,
        month
    from internal.landed_cells
    union
    select
        'landed_partitions' as found_in,
        source as name,
        month
    from internal.landed_partitions
    union
    select
        'models' as found_in,
        model as name,
        cutoff as month
    from models
)

select *
from months
where day(month) <> 1
order by found_in, name, month;
