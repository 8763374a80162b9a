-- The months to which decay_fit fits curves, with transformed coordinates. For decay_fit.
-- Grain: one row per model, source, protocol, fit, month; fit is linear, exponential, power or
--   logarithmic.
-- Units: t counts calendar months; 1 is the first fitted month. y is bits per byte. The straight
--   line v = intercept + slope * u is fitted, where u is t or ln t, and v is y or ln y. v is NULL
--   in all rows of a curve if one of its figures has no logarithm.
-- Source: Zhu et al. (FreshBench), appendix E; docs/metrics.md (Time).
create or replace view internal.decay_fit_points as
with points as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month,
        case when m.cutoff is null then 'all months' else m.cutoff_provenance end as fit_basis,
        l.bits_per_byte as y,
        min(l.month) over (partition by l.model, l.source, l.protocol) as first_month
    from internal.monthly_loss_details as l
    left join main.models as m on l.model = m.model
    where l.bits_per_byte is not null and (m.cutoff is null or l.month > m.cutoff)
),

timed as (
    select
        *,
        date_diff('month', first_month, month) + 1 as t,
        min(y) over (partition by model, source, protocol) > 0 as has_logarithm
    from points
)

select
    p.model,
    p.source,
    p.protocol,
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
