-- Give every landed source a row in `sources`, so that a join loses no losses. Details may follow.
insert or ignore into sources (source)
select distinct source
from landed_cells;
