-- The number of cells of a month, and a list of all months.
select
    count(*) filter (where month = cast($month as date)) as num_cells,
    min(month) as first_month,
    max(month) as last_month
from internal.landed_cells;
