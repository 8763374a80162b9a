-- The mean over sources has the cells that count in it; single pictures have no replicates.
select
    scope,
    is_after,
    count(*) as num_rows
from internal.split_replicates_at(date '2024-03-01')
group by scope, is_after;
