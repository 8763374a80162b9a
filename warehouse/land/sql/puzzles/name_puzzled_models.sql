-- Give every model with puzzles a row in its dimension; else joins would drop the model.
insert into models (model)
select distinct cells.model
from internal.scylla_cells as cells
anti join models as named on cells.model = named.model;
