-- The first staged row that conflicts with landed rows: its chunk has landed with other losses, or
-- its cell with another revision of the model.
with clashes as (
    select
        i.model,
        i.source,
        i.month,
        i.protocol,
        i.document_id,
        i.chunk_index,
        i.revision,
        t.revision as landed_revision,
        i.nll_nats,
        landed.nll_nats as landed_nll_nats
    from staged as i
    inner join touched as t
        on
            i.model = t.model
            and i.source = t.source
            and i.month is not distinct from t.month
            and i.protocol = t.protocol
    left join chunk_losses as landed
        on
            i.model = landed.model
            and i.source = landed.source
            and i.month is not distinct from landed.month
            and i.protocol = landed.protocol
            and i.document_id = landed.document_id
            and i.chunk_index = landed.chunk_index
    where i.revision <> t.revision or landed.document_id is not null
)

select *
from clashes
order by model, source, month, protocol, document_id, chunk_index
limit 1;
