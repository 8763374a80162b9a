-- A jump is no dip: the month before it is below those after it only.
select
    model,
    count(*) filter (where is_suspected) as suspected,
    count(*) as months
from suspected_contamination
group by model;
