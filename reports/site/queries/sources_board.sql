-- One row per source with measured months.
-- first_month: first month with text [date]
-- last_month: last month with text [date]
-- fact_reason: why a fact of the source is missing
-- num_models: models that were scored on the source [models]
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
    any_value(s.title) as title,
    any_value(s.category) as category,
    any_value(s.language) as language,
    min(m.month) as first_month,
    max(m.month) as last_month,
    cast(sum(m.num_documents) as bigint) as num_documents,
    cast(sum(m.num_bytes) as bigint) as num_bytes,
    max(m.num_models) as num_models,
    any_value(s.licence) as licence,
    case
        when count(s.title) = 0 or count(s.category) = 0 or count(s.licence) = 0
            then 'not described in the catalogue'
    end as fact_reason
from months as m
left join sources as s on m.source = s.source
group by m.source
order by m.source
