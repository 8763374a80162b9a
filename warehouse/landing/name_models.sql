-- Give every landed model a row in `models`, so that a join loses no losses. Details may follow.
insert or ignore into models (model)
select distinct model
from landed_cells;
