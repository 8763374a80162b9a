-- Fits of linear, exponential, power and logarithmic curves to a model's monthly figures.
-- Grain: one row per model, source, protocol, figure, fit.
-- figure: bits_per_byte, or accuracy of forecasts by the month in which their questions opened.
-- Fits, with t = 1 in the first month: linear level + rate * t; exponential level * exp(rate * t);
--   power level * t^rate; logarithmic level + rate * ln(t). All by least squares; exponential and
--   power in the logarithms of the figures (the paper does not say how; its k is -rate).
-- Months: those after the cutoff, where decay begins. If the cutoff is unknown, all months count,
--   and fit_basis is `all months`. A missing month counts in t.
-- Units: residual_variance is the population variance of the residuals. leave_one_out_error is the
--   mean squared error for a left-out month. Both are in the square of the figure's unit, also for
--   logarithmic fits; NULL with fewer than three months. best_by_*: True for the least of the four.
-- Source: Zhu et al. (FreshBench), appendix E; docs/metrics.md (Time).
create or replace view papers.decay_fit as
with centred as (
    select
        *,
        count(v) over curve as num_months,
        avg(u) over curve as mean_u,
        avg(v) over curve as mean_v,
        var_pop(u) over curve * count(v) over curve as squares_u,
        covar_pop(v, u) over curve / nullif(var_pop(u) over curve, 0) as rate
    from internal.decay_fit_points
    window curve as (partition by model, source, protocol, figure, fit)
),

residuals as (
    select
        *,
        v - mean_v - rate * (u - mean_u) as residual,
        1 / num_months + power(u - mean_u, 2) / squares_u as leverage
    from centred
),

-- The residual of a left-out month is residual / (1 - leverage).
errors as (
    select
        *,
        case when is_log_y then y - exp(v - residual) else residual end as error,
        case
            when is_log_y then y - exp(v - residual / nullif(1 - leverage, 0))
            else residual / nullif(1 - leverage, 0)
        end as error_left_out
    from residuals
),

fits as (
    select
        model,
        source,
        protocol,
        figure,
        fit,
        any_value(fit_basis) as fit_basis,
        any_value(first_month) as first_month,
        count(*) as num_months,
        any_value(
            case when is_log_y then exp(mean_v - rate * mean_u) else mean_v - rate * mean_u end
        ) as level,
        any_value(rate) as rate,
        case when count(*) > 2 then var_pop(error) end as residual_variance,
        case when count(*) > 2 then avg(error_left_out * error_left_out) end as leave_one_out_error
    from errors
    group by model, source, protocol, figure, fit
)

select
    *,
    coalesce(residual_variance = min(residual_variance) over curves, false) as best_by_variance,
    coalesce(leave_one_out_error = min(leave_one_out_error) over curves, false)
        as best_by_leave_one_out
from fits
window curves as (partition by model, source, protocol, figure);
