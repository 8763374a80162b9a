-- Why gaps, slopes and decays of a model have no interval over time. For left_out_figures.
-- Grain: one row per model, source, protocol with dated figures. A reason is NULL if the figure has
--   an interval, or if there is no figure.
-- Source: docs/metrics.md (Intervals).
create or replace view internal.interval_reasons as
with figures as (
    select
        l.model,
        l.source,
        l.protocol,
        l.month > m.cutoff as is_after
    from internal.monthly_loss_details as l
    left join main.models as m on l.model = m.model
    where l.bits_per_byte is not null
),

counted as (
    select
        model,
        source,
        protocol,
        count(*) as num_months,
        count(*) filter (where not is_after) as num_before,
        count(*) filter (where is_after) as num_after
    from figures
    group by model, source, protocol
),

decays as (
    select
        model,
        source,
        protocol,
        count(distinct horizon) filter (where horizon > 0) as num_quarters
    from internal.decay_cells
    where horizon is not null
    group by model, source, protocol
    having bool_or(horizon = 0)
)

select
    c.model,
    c.source,
    c.protocol,
    case
        when least(c.num_before, c.num_after) > 0 and not is_compressor(c.model)
            then gap_reason(c.num_before, c.num_after, c.protocol, 'month', 0)
    end as gap_reason,
    case when c.num_months > 1 then slope_reason(c.num_months, '', c.protocol, 0) end
        as slope_reason,
    case
        when d.num_quarters > 0
            then decay_reason(minimum('months of the base'), d.num_quarters, d.protocol)
    end as decay_reason
from counted as c
left join decays as d
    on c.model = d.model and c.source = d.source and c.protocol = d.protocol;
