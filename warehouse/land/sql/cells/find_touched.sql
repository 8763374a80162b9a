-- The landed cells that incoming rows belong to.
create or replace temp table touched as
select landed.*
from internal.landed_cells as landed
semi join incoming_cells as cells
    on
        landed.model = cells.model
        and landed.source = cells.source
        and landed.month is not distinct from cells.month
        and landed.protocol = cells.protocol;
