-- The months to which decay_fit fits curves, with transformed coordinates. For decay_fit.
-- Grain: one row per model, source, protocol, figure, fit, month; fit is linear, exponential, power
--   or logarithmic.
-- Units: t counts calendar months; 1 is the first fitted month. y is the figure: bits per byte, or
--   accuracy of the questions opened in the month. The straight line v = intercept + slope * u is
--   fitted, where u is t or ln t, and v is y or ln y. v is NULL in all rows of a curve if one of
--   its figures has no logarithm.
-- Source: Zhu et al. (FreshBench), appendix E; docs/metrics.md (Time).
create or replace view internal.decay_fit_points as
with figures as (
    select
        model,
        source,
        protocol,
        'bits_per_byte' as figure,
        month,
        bits_per_byte as y
    from internal.monthly_loss_details
    where bits_per_byte is not null
    union all
    select
        model,
        source,
        protocol,
        'accuracy' as figure,
        month,
        accuracy as y
    from main.forecast_accuracy_monthly
),

points as (
    select
        f.*,
        case when m.cutoff is null then 'all months' else m.cutoff_provenance end as fit_basis,
        min(f.month) over (partition by f.model, f.source, f.protocol, f.figure) as first_month
    from figures as f
    left join main.models as m on f.model = m.model
    where m.cutoff is null or f.month > m.cutoff
),

timed as (
    select
        *,
        date_diff('month', first_month, month) + 1 as t,
        min(y) over (partition by model, source, protocol, figure) > 0 as has_logarithm
    from points
)

select
    p.model,
    p.source,
    p.protocol,
    p.figure,
    f.fit,
    p.month,
    p.first_month,
    p.fit_basis,
    p.t,
    p.y,
    f.is_log_y,
    case when f.is_log_t then ln(p.t) else p.t end as u,
    case
        when not f.is_log_y then p.y
        when p.has_logarithm then ln(nullif(p.y, 0))
    end as v
from timed as p
cross join (
    values
    ('linear', false, false),
    ('exponential', false, true),
    ('power', true, true),
    ('logarithmic', true, false)
) as f (fit, is_log_t, is_log_y);
