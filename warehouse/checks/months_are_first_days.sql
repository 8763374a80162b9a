-- Months that are not the first day of a month: views would take one month for two.
-- Do: Land the file that they came from again, with months as first days and --replace.
with months as (
    select
        'landed_cells' as found_in,
        source as name,
        month
    from landed_cells
    union
    select
        'landed_partitions' as found_in,
        source as name,
        month
    from landed_partitions
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
