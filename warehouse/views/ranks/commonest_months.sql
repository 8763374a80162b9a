-- The models of each source that have the same months, so far as most of them do.
-- Grain: one row per protocol, source, model; source NULL is for the mean over sources: the models
--   that have the same cells of text in all sources. For other views to read.
-- Of all sets of months the one that most models have; where two are as common, the larger.
-- Source: docs/metrics.md (Ranks).
create or replace view internal.commonest_months as
with sets as (
    select
        protocol,
        source,
        model,
        list(month order by month) as months,
        [source] as sources
    from internal.monthly_loss_details
    where bits_per_byte is not null
    group by protocol, source, model
    union all
    select
        protocol,
        null as source,
        model,
        list(month order by source, month) as months,
        list(source order by source, month) as sources
    from internal.monthly_loss_details
    where bits_per_byte is not null and is_text
    group by protocol, model
),

counted as (
    select
        *,
        count(*) over (partition by protocol, source, months, sources) as num_models
    from sets
)

select
    protocol,
    source,
    model
from counted
qualify
    rank() over (
        partition by protocol, source
        order by num_models desc, len(months) desc, months asc, sources asc
    ) = 1;
