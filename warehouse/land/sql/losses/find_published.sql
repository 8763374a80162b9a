-- The first incoming cell of the protocol for published rates, which is not a scoring protocol.
select
    model,
    source,
    month
from incoming_cells
where protocol = $protocol
order by cell
limit 1;
