-- Give every landed source a row in its dimension, so that joins lose no losses.
insert into sources (source)
select distinct landed.source
from landed_cells as landed
anti join sources as named on landed.source = named.source;
