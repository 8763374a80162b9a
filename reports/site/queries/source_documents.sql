-- What was collected: documents and bytes that any model was scored on, and the text's change.
-- num_models: models that were scored on the month [models]
with months as (
    select
        source,
        month,
        max(num_documents) as num_documents,
        max(num_bytes) as num_bytes,
        count(*) as num_models
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
    group by source, month
)

select
    m.source,
    m.month,
    m.num_documents,
    m.num_bytes,
    m.num_models,
    t.difference_from_previous
from months as m
left join text_difference as t on m.source = t.source and m.month = t.month
order by m.source asc, m.month desc
