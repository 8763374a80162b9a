-- Improvement of the fit to each model's mean curve by a change after a month.
-- Grain: one row per model, protocol, month (the last before the change), with at least three
--   months on either side. For estimated_cutoff.
-- A change is the best fit of a step up, a steeper slope from the next month on, or both. So a
--   steady trend of the text is no change, and neither is a curve that flattens.
-- Units: bits per byte. squares_gained: reduction of squares_left of trend_residuals; jump: height
--   of the step. squares_gained_by_fall, for comparison: by a step down and any slope (no cutoff).
-- Source: two-segment fit of docs/metrics.md (Control-adjusted figures and change points).
create or replace view internal.cutoff_candidates as
with residuals as materialized (
    from internal.trend_residuals
),

changes as (
    select
        b.model,
        b.protocol,
        b.month,
        b.num_months,
        a.residual,
        a.u,
        a.d,
        a.x - min(a.x) over (partition by b.model, b.protocol, b.month) as h
    from residuals as b
    inner join residuals as a
        on b.model = a.model and b.protocol = a.protocol and b.position < a.position
    where b.position between 3 and b.num_months - 3
),

-- The step s (1 after the change) and the slope h, minus their projections in trend_residuals.
products as (
    select
        model,
        protocol,
        month,
        sum(residual) as ys,
        sum(residual * h) as yh,
        count(*) - count(*) * count(*) / any_value(num_months) - sum(u) * sum(u) - sum(d) * sum(d)
            as ss,
        sum(h * h) - sum(h) * sum(h) / any_value(num_months) - sum(h * u) * sum(h * u)
        - sum(h * d) * sum(h * d) as hh,
        sum(h) - count(*) * sum(h) / any_value(num_months) - sum(u) * sum(h * u)
        - sum(d) * sum(h * d) as sh
    from changes
    group by model, protocol, month
),

fits as (
    select
        model,
        protocol,
        month,
        (hh * ys - sh * yh) / nullif(ss * hh - sh * sh, 0) as step,
        (ss * yh - sh * ys) / nullif(ss * hh - sh * sh, 0) as slope,
        ys,
        yh,
        case when ys > 0 and ss > 1e-9 then ys * ys / ss else 0 end as gained_by_step,
        case when yh > 0 and hh > 1e-9 then yh * yh / hh else 0 end as gained_by_slope,
        ys / nullif(ss, 0) as step_alone
    from products
)

select
    model,
    protocol,
    month,
    case
        when step >= 0 and slope >= 0 then step * ys + slope * yh
        else greatest(gained_by_step, gained_by_slope)
    end as squares_gained,
    case when step < 0 then step * ys + slope * yh else 0 end as squares_gained_by_fall,
    case
        when step >= 0 and slope >= 0 then step
        when gained_by_step > gained_by_slope then step_alone
        else 0
    end as jump
from fits;
