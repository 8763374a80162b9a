-- Which months exist, and the share of models that were scored on them.
-- num_models: models that were scored on the month [models]
-- share: share of all models [share]
with months as (
    select
        source,
        month,
        count(*) as num_models,
        max(num_documents) as num_documents
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
    group by source, month
)

select
    *,
    num_models / max(num_models) over () as share
from months
order by source, month
