-- The first incoming cell with losses of several revisions of its model.
select
    model,
    source,
    month,
    protocol,
    min(revision) as revision,
    max(revision) as other_revision
from incoming_cells
group by model, source, month, protocol
having min(revision) <> max(revision)
order by model, source, month, protocol
limit 1;
