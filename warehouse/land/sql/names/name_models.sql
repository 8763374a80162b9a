-- Give every landed model a row in its dimension; else joins would drop losses.
insert into models (model)
select distinct landed.model
from internal.landed_cells as landed
anti join models as named on landed.model = named.model;
