-- How many landed cells the incoming rows belong to.
select count(*) as num_cells
from touched;
