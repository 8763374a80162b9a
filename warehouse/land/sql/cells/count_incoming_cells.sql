-- The number of incoming cells.
select count(*) as num_cells
from incoming_cells;
