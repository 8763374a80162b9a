-- Months that are not the first day of a month, or of another period of the source: views would
-- split such a month in two.
-- Do: Land their file again, with months as first days, using --replace.
with months as (
    select
        'landed_cells' as found_in,
        source as name,
        source_period(source) as period,
        month
    from internal.landed_cells
    union
    select
        'landed_partitions' as found_in,
        source as name,
        source_period(source) as period,
        month
    from internal.landed_partitions
    union
    select
        'models' as found_in,
        model as name,
        'month' as period,
        cutoff as month
    from models
)

select
    found_in,
    name,
    month
from months
where
    case period
        when 'week' then isodow(month) <> 1
        when 'half-month' then day(month) not in (1, 16)
        else day(month) <> 1
    end
order by found_in, name, month;
