-- Give every landed model a row in its dimension, so that joins lose no losses.
insert or ignore into models (model)
select distinct model
from landed_cells;
