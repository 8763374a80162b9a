-- Give every landed model a row in its dimension, so that joins lose no losses.
insert into models (model)
select distinct landed.model
from landed_cells as landed
anti join models as named on landed.model = named.model;
