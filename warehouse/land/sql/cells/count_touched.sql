-- The number of landed cells that incoming rows belong to.
select count(*) as num_cells
from touched;
