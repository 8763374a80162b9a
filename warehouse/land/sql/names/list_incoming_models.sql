-- The models and partitions of the incoming cells.
select distinct
    model,
    source,
    month
from incoming_cells;
