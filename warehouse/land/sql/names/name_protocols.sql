-- Give every landed protocol a row in its dimension; else joins would drop losses.
insert into protocols (protocol)
select distinct landed.protocol
from internal.landed_cells as landed
anti join protocols as named on landed.protocol = named.protocol;
