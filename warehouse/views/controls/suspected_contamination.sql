-- Months that a model predicts far better than the months around them: possible training data.
-- Grain: one row per model, source, protocol, month. source NULL: the mean over the model's sources
--   of text, a more powerful test if the month was seen in all sources.
-- The test: is the month predicted better than the months before and after, relative to the other
--   models? The last month before a cutoff is better than the months after only. t = shortfall /
--   its standard error, one-sided. Figures are NULL where reason says why.
-- q_value: p_value after Benjamini-Hochberg's correction over the models, sources and months of a
--   protocol; the means over sources are a family of their own. is_suspected: q_value <= 0.05.
-- Units: bits per byte. predicted_bits_per_byte = bits_per_byte + shortfall.
-- Source: docs/metrics.md (Contamination); warehouse/estimates/contamination.py.
create or replace view suspected_contamination as
with tested as (
    select
        *,
        shortfall / nullif(shortfall_error, 0) as t,
        t_p_value(shortfall / nullif(shortfall_error, 0), degrees_of_freedom) / 2 as half
    from internal.month_shortfalls
),

ranked as (
    select
        *,
        case when t > 0 then half else 1 - half end as p_value,
        count(half) over (partition by protocol, source is null) as num_tests,
        row_number() over (
            partition by protocol, source is null
            order by case when t > 0 then half else 1 - half end nulls last, model, source, month
        ) as position
    from tested
),

corrected as (
    select
        *,
        false_discovery_rate(p_value, num_tests, position, row(protocol, source is null)) as q_value
    from ranked
)

select
    c.model,
    c.source,
    case when c.source is null then 'all' else 'source' end as scope,
    c.protocol,
    c.month,
    coalesce(c.q_value <= 0.05, false) as is_suspected,
    c.month > m.cutoff as is_after_cutoff,
    c.bits_per_byte,
    c.bits_per_byte + c.shortfall as predicted_bits_per_byte,
    c.t as t_statistic,
    c.p_value,
    c.q_value,
    c.reason
from corrected as c
left join models as m on c.model = m.model;
