-- How many cells are incoming.
select count(*) as num_cells
from incoming_cells;
