-- How many cells a month has, and which months there are.
select
    count(*) filter (where month = cast($month as date)) as num_cells,
    min(month) as first_month,
    max(month) as last_month
from landed_cells;
