-- Stage the rows of touched cells that stay: of the same revision, and not superseded.
insert into incoming
with staged as (
    select
        model,
        source,
        month,
        protocol,
        any_value(revision) as revision
    from incoming
    group by model, source, month, protocol
)

select landed.*
from chunk_losses as landed
semi join staged
    on
        landed.model = staged.model
        and landed.source = staged.source
        and landed.month is not distinct from staged.month
        and landed.protocol = staged.protocol
        and landed.revision = staged.revision
anti join incoming as i
    on
        landed.model = i.model
        and landed.source = i.source
        and landed.month is not distinct from i.month
        and landed.protocol = i.protocol
        and landed.document_id = i.document_id
        and landed.chunk_index = i.chunk_index;
