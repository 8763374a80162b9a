-- Give every landed protocol a row in its dimension, so that joins lose no losses.
insert into protocols (protocol)
select distinct landed.protocol
from landed_cells as landed
anti join protocols as named on landed.protocol = named.protocol;
