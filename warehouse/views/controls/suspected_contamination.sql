-- Months that a model predicts far better than the months around them: possible training data.
-- Grain: one row per model, source, protocol, month that could be tested. source NULL: the mean
--   over the model's sources of text, a more powerful test if the month was seen in all sources.
-- The test: is the month's level (controlled_level) below the predictions from the months before
--   and from the months after? At a cutoff, it is below only one of them. t = smaller shortfall /
--   (1.4826 * median absolute deviation of the curve), one-sided; degrees of freedom: number of
--   months. Curves need at least eight months.
-- p_value is below 0.05 in less than 5 % of clean months (simulated: docs/metrics.md). q_value is
--   corrected for the curve's months by Benjamini-Hochberg; is_suspected: q_value <= 0.05.
-- Units: bits per byte, as if the control's curve were flat.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view suspected_contamination as
with scaled as (
    select
        *,
        count(*) over curve as num_tested,
        shortfall / nullif(1.4826e0 * median(abs(deviation)) over curve, 0) as t
    from internal.neighbour_predictions
    window curve as (partition by model, protocol, source)
),

tested as (
    select
        *,
        case
            when t > 0 then t_p_value(t, num_tested) / 2
            else 1 - t_p_value(t, num_tested) / 2
        end as p_value
    from scaled
    where num_tested >= 8 and t is not null
),

ranked as (
    select
        *,
        row_number() over (
            partition by model, protocol, source order by p_value, month
        ) as position
    from tested
),

corrected as (
    select
        *,
        least(1, min(p_value * num_tested / position) over (
            partition by model, protocol, source
            order by position desc
        )) as q_value
    from ranked
)

select
    c.model,
    c.source,
    c.protocol,
    c.month,
    l.control,
    l.is_after as is_after_cutoff,
    l.level as bits_per_byte,
    c.predicted as predicted_bits_per_byte,
    c.t as t_statistic,
    c.p_value,
    c.q_value,
    c.q_value <= 0.05 as is_suspected
from corrected as c
inner join internal.controlled_level as l
    on
        c.model = l.model
        and c.protocol = l.protocol
        and c.source is not distinct from l.source
        and c.month = l.month;
