-- Which of two models ages faster, has the larger gap, the steeper slope or the faster decay?
-- Grain: one row per model, other_model, source, protocol, effect; model is before other_model in
--   the alphabet. source NULL: of the mean over sources of text.
-- effect: gap and growth (a month) as in control_adjusted_gap and ageing, slope (a month) as in
--   tbi_likelihood: in bits per byte. decay: decay_mean_pct of decay_by_horizon, in per cent.
-- difference = value - other_value. *_low and *_high bound a 95 % interval over months. In the
--   panel, noise that two models share cancels. Slopes and decays count as independent: their
--   intervals are too wide if the same months are hard for both models.
-- p_value: of no difference. p_value_adjusted is Holm's over the pairs of a source, protocol and
--   effect: if rows below 0.05 count as real, the probability of any error is at most 5 %.
-- Only pairs in which both models have the figure, with an interval. unmeasured has the reason for
--   each model and effect without.
-- Source: Holm 1979; docs/metrics.md (The panel, Pairs).
create or replace view effect_difference as
with curves as materialized (
    select
        model,
        source,
        protocol,
        'slope' as effect,
        tbi_per_month as value,
        tbi_per_month_high - tbi_per_month as half
    from tbi_likelihood
    union all
    select
        model,
        source,
        protocol,
        'decay' as effect,
        decay_mean_pct as value,
        decay_mean_pct_high - decay_mean_pct as half
    from internal.decay_figures
),

tests as materialized (
    select * from panel_tests
),

pairs as (
    select
        p.model,
        p.other_model,
        p.source,
        p.protocol,
        p.effect,
        m.value,
        o.value as other_value,
        p.difference_error,
        least(m.degrees_of_freedom, o.degrees_of_freedom) as degrees_of_freedom,
        'panel' as basis
    from internal.panel_differences as p
    inner join tests as m
        on
            p.model = m.model
            and p.source is not distinct from m.source
            and p.protocol = m.protocol
            and p.effect = m.effect
    inner join tests as o
        on
            p.other_model = o.model
            and p.source is not distinct from o.source
            and p.protocol = o.protocol
            and p.effect = o.effect
    union all
    -- Half an interval stands for 1.96 standard errors, also with few degrees of freedom.
    select
        m.model,
        o.model as other_model,
        m.source,
        m.protocol,
        m.effect,
        m.value,
        o.value as other_value,
        sqrt(m.half * m.half + o.half * o.half) / 1.959963984540054e0 as difference_error,
        1e9 as degrees_of_freedom,
        'curves' as basis
    from curves as m
    inner join curves as o
        on
            m.source is not distinct from o.source
            and m.protocol = o.protocol
            and m.effect = o.effect
            and m.model < o.model
    where m.half is not null and o.half is not null
),

differences as (
    select
        *,
        value - other_value as difference
    from pairs
),

tested as (
    select
        *,
        t_975(degrees_of_freedom) * difference_error as half,
        difference_p_value(difference, difference_error, degrees_of_freedom) as p_value
    from differences
),

stepped as (
    select
        *,
        least(1, p_value * (count(p_value) over family + 1 - row_number() over by_p_value)) as step
    from tested
    window
        family as (partition by protocol, source, effect),
        by_p_value as (
            partition by protocol, source, effect
            order by p_value, model, other_model
        )
)

select
    model,
    other_model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    effect,
    value,
    other_value,
    difference,
    difference - half as difference_low,
    difference + half as difference_high,
    p_value,
    case
        when p_value is not null
            then
                max(step) over (
                    partition by protocol, source, effect
                    order by p_value, model, other_model
                )
    end as p_value_adjusted,
    basis
from stepped;
