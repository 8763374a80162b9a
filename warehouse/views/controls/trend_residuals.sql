-- Residuals of each model's mean curve without level, trend and the control's curve.
-- Grain: one row per model, protocol, month. For cutoff_candidates.
-- Least squares on three orthonormal directions: the constant; u, the trend over months; d, the
--   control's curve without its level and trend. They remove any drift of the text's difficulty,
--   and other variation that the control shares.
-- Units: residual and squares_left (the sum of the curve's squared residuals) in bits per byte;
--   NULL if only rounding errors are left. x is the number of months since the curve's first month.
--   degrees_of_freedom: months less the parameters of a fit with a change (five if the control's
--   curve is more than a level and a trend, else four).
-- Source: two-segment fit of docs/metrics.md (Control-adjusted figures and change points).
create or replace view internal.trend_residuals as
with points as (
    select
        model,
        protocol,
        month,
        control,
        date_diff('month', min(month) over curve, month) as x,
        row_number() over (partition by model, protocol order by month) as position,
        count(*) over curve as num_months,
        1e-20 * sum(bits_per_byte * bits_per_byte) over curve as rounding,
        1e-20 * sum(control_bits_per_byte * control_bits_per_byte) over curve as control_rounding,
        bits_per_byte - avg(bits_per_byte) over curve as y,
        coalesce(control_bits_per_byte - avg(control_bits_per_byte) over curve, 0) as c
    from internal.controlled_curve
    where source is null
    window curve as (partition by model, protocol)
),

trends as (
    select
        *,
        coalesce(
            (x - avg(x) over curve) / nullif(stddev_pop(x) over curve * sqrt(num_months), 0), 0
        ) as u
    from points
    window curve as (partition by model, protocol)
),

detrended as (
    select
        *,
        y - u * sum(y * u) over curve as y_left,
        c - u * sum(c * u) over curve as c_left
    from trends
    window curve as (partition by model, protocol)
),

directions as (
    select
        *,
        case
            when sum(c_left * c_left) over curve > control_rounding
                then c_left / sqrt(sum(c_left * c_left) over curve)
            else 0
        end as d
    from detrended
    window curve as (partition by model, protocol)
),

residuals as (
    select
        *,
        y_left - d * sum(y_left * d) over curve as residual
    from directions
    window curve as (partition by model, protocol)
),

measured as (
    select
        *,
        sum(residual * residual) over curve as squares
    from residuals
    window curve as (partition by model, protocol)
)

select
    model,
    protocol,
    month,
    control,
    x,
    position,
    num_months,
    num_months
    - case when max(abs(d)) over (partition by model, protocol) > 0 then 5 else 4 end
        as degrees_of_freedom,
    u,
    d,
    case when squares > rounding then residual end as residual,
    case when squares > rounding then squares end as squares_left
from measured;
