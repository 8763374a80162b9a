-- Give every landed source a row in its dimension, so that joins lose no losses.
insert or ignore into sources (source)
select distinct source
from landed_cells;
