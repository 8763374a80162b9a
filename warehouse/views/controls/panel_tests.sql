-- Each model's gap and growth in the panel, with interval and tests.
-- Grain: one row per model, protocol, source, effect; source NULL: of the mean over sources of
--   text.
-- Units: bits per byte; growth, a month. *_low and *_high bound a 95 % interval over months:
--   Student's t. p_value: of no effect. q_value: Benjamini-Hochberg's over the models and sources
--   of a protocol; the means over sources are a family of their own. All are NULL where reason says
--   why.
-- Source: docs/metrics.md (The panel); Benjamini and Hochberg 1995.
create or replace view panel_tests as
with effects as (
    select
        model,
        source,
        protocol,
        'gap' as effect,
        gap as value,
        gap_error as standard_error,
        degrees_of_freedom,
        gap_reason as reason
    from internal.panel_effects
    union all
    select
        model,
        source,
        protocol,
        'growth' as effect,
        growth as value,
        growth_error as standard_error,
        degrees_of_freedom,
        growth_reason as reason
    from internal.panel_effects
),

tested as (
    select
        *,
        difference_p_value(value, standard_error, degrees_of_freedom) as p_value
    from effects
),

ranked as (
    select
        *,
        count(p_value) over (partition by protocol, effect, source is null) as num_tests,
        row_number() over (
            partition by protocol, effect, source is null
            order by p_value nulls last, model, source
        ) as position
    from tested
)

select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    effect,
    value,
    value - t_975(degrees_of_freedom) * standard_error as value_low,
    value + t_975(degrees_of_freedom) * standard_error as value_high,
    p_value,
    false_discovery_rate(p_value, num_tests, position, row(protocol, effect, source is null))
        as q_value,
    degrees_of_freedom,
    reason
from ranked;
