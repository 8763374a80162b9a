-- The last month before a model's losses begin to rise, as an estimate of the model's cutoff.
-- Grain: one row per model, protocol.
-- The curve: the mean over sources of text of controlled_curve. The fit: a level, a trend and the
--   control's curve; from some month on also a step up, a steeper slope or both. Each side has at
--   least three months (cutoff_candidates). A steady trend or a fall is no change.
-- The test: F = degrees of freedom * squares gained / squares left, the largest over all months.
--   estimated_cutoff is NULL below f_threshold = 15 + 30 / v + 260 / v^2 at v degrees of freedom. 1
--   % of curves of normal noise around any trend exceed it (simulated: tests; at v = 2, 1.5 %).
-- The interval: the months with a fit at most 7.35 error variances worse than the best (95 %:
--   Hansen 2000, "Sample Splitting and Threshold Estimation", table 1). The variance is estimated
--   from the months' scatter, so months with a single cluster count.
-- Units: bits per byte, months; jump_bits_per_byte is 0 if only the slope changes.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view estimated_cutoff as
with candidates as materialized (
    from internal.cutoff_candidates
),

curves as (
    select
        model,
        protocol,
        any_value(control) as control,
        count(*) as num_months,
        any_value(degrees_of_freedom) as degrees_of_freedom,
        any_value(squares_left) as squares_left
    from internal.trend_residuals
    group by model, protocol
),

best as (
    select
        model,
        protocol,
        max(squares_gained) as squares_gained,
        max(squares_gained_by_fall) as squares_gained_by_fall,
        arg_max(month, squares_gained) as month,
        arg_max(jump, squares_gained) as jump
    from candidates
    group by model, protocol
),

-- variance: residual variance of the fit with the change; never 0, because 0 means certainty.
tested as (
    select
        b.*,
        greatest(c.squares_left - b.squares_gained, 1e-12 * c.squares_left)
        / c.degrees_of_freedom as variance,
        15 + 30 / c.degrees_of_freedom + 260 / power(c.degrees_of_freedom, 2) as f_threshold
    from curves as c
    inner join best as b on c.model = b.model and c.protocol = b.protocol
    where
        c.degrees_of_freedom >= 2
        and (b.squares_gained_by_fall - b.squares_gained) * c.degrees_of_freedom
        <= 7.35 * greatest(c.squares_left - b.squares_gained_by_fall, 0)
),

ranges as (
    select
        t.model,
        t.protocol,
        min(k.month) as low,
        max(k.month) as high
    from tested as t
    inner join candidates as k on t.model = k.model and t.protocol = k.protocol
    where t.squares_gained - k.squares_gained <= 7.35 * t.variance
    group by t.model, t.protocol
),

found as (
    select
        c.*,
        t.squares_gained / t.variance as f_statistic,
        t.f_threshold,
        coalesce(t.squares_gained / t.variance >= t.f_threshold, false) as is_significant,
        t.month,
        t.jump,
        r.low,
        r.high,
        m.cutoff
    from curves as c
    left join tested as t on c.model = t.model and c.protocol = t.protocol
    left join ranges as r on c.model = r.model and c.protocol = r.protocol
    left join models as m on c.model = m.model
)

select
    model,
    protocol,
    control,
    num_months,
    case when is_significant then month end as estimated_cutoff,
    case when is_significant then low end as estimated_cutoff_low,
    case when is_significant then high end as estimated_cutoff_high,
    case when is_significant then jump end as jump_bits_per_byte,
    f_statistic,
    f_threshold,
    cutoff as catalogue_cutoff,
    case when is_significant then date_diff('month', cutoff, month) end as difference_months
from found;
