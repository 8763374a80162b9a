-- Stage the landed rows of touched cells to keep: same revision, and not superseded.
insert into staged
with staged_cells as (
    select
        model,
        source,
        month,
        protocol,
        any_value(revision) as revision
    from staged
    group by model, source, month, protocol
)

select landed.*
from chunk_losses as landed
semi join staged_cells as cells
    on
        landed.model = cells.model
        and landed.source = cells.source
        and landed.month is not distinct from cells.month
        and landed.protocol = cells.protocol
        and landed.revision = cells.revision
anti join staged as i
    on
        landed.model = i.model
        and landed.source = i.source
        and landed.month is not distinct from i.month
        and landed.protocol = i.protocol
        and landed.document_id = i.document_id
        and landed.chunk_index = i.chunk_index;
