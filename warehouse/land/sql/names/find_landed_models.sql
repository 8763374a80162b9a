-- The models with landed rows, each with one of its revisions.
select
    model,
    max(revision) as revision
from internal.landed_cells
group by model
order by model;
