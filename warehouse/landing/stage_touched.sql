-- The landed cells that the staged rows belong to.
create or replace temp table touched as
with staged as (
    select distinct
        model,
        source,
        month,
        protocol
    from incoming
)

select landed.*
from landed_cells as landed
semi join staged
    on
        landed.model = staged.model
        and landed.source = staged.source
        and landed.month is not distinct from staged.month
        and landed.protocol = staged.protocol;
