-- The models of each source that have the most common set of months.
-- Grain: one row per protocol, source, model. source NULL: the models with the most common set of
--   cells of text in all sources. For other views to read.
-- If two sets of months are equally common, the larger set is taken. Compressors are not counted.
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
        count(*) filter (where not is_compressor(model)) over (
            partition by protocol, source, months, sources
        ) as num_models
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
