-- The number of incoming cells whose model, source or protocol has no row in its dimension.
select count(*) as num_cells
from incoming_cells as cells
left join models as m on cells.model = m.model
left join sources as s on cells.source = s.source
left join protocols as p on cells.protocol = p.protocol
where m.model is null or s.source is null or p.protocol is null;
