-- Give every landed protocol a row in its dimension, so that joins lose no losses.
insert or ignore into protocols (protocol)
select distinct protocol
from landed_cells;
