-- The models of which something has landed, with a revision of theirs.
select
    model,
    max(revision) as revision
from landed_cells
group by model
order by model;
