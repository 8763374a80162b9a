-- Give every landed protocol a row in `protocols`, so that a join loses no losses. Details may follow.
insert or ignore into protocols (protocol)
select distinct protocol
from landed_cells;
