-- The models that the warehouse names, each with one of its revisions.
select
    m.model,
    coalesce(max(c.revision), any_value(m.revision)) as revision
from models as m
left join internal.landed_cells as c on m.model = c.model
group by m.model
order by m.model;
