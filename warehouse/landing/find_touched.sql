-- The landed cells that incoming rows belong to.
create or replace temp table touched as
select landed.*
from landed_cells as landed
semi join incoming_documents as d
    on
        landed.model = d.model
        and landed.source = d.source
        and landed.month is not distinct from d.month
        and landed.protocol = d.protocol;
