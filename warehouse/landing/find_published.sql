-- The first incoming cell of a protocol that is no protocol of scoring.
select
    model,
    source,
    month
from incoming_cells
where protocol = $protocol
order by cell
limit 1;
