-- Give every landed source a row in its dimension; else joins would drop losses.
insert into sources (source)
select distinct landed.source
from internal.landed_cells as landed
anti join sources as named on landed.source = named.source;
