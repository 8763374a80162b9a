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
        l.standard_error,
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
        count(*) filter (where is_after) as num_after,
        case
            when protocol = 'published' then 'no interval: published rates have no documents'
            when count(standard_error) < count(*) then 'no interval: a month has a single cluster'
        end as no_error
    from figures
    group by model, source, protocol
),

decays as (
    select
        model,
        source,
        protocol,
        count(*) filter (where horizon > 0) as num_after,
        bool_or(standard_error is null) as lacks_error
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
        when least(c.num_before, c.num_after) = 0 or starts_with(c.model, 'control:') then null
        when c.no_error is not null then c.no_error
        else lacking_interval(c.num_before, c.num_after)
    end as gap_reason,
    case
        when c.num_months < 2 then null
        when c.no_error is not null then c.no_error
        when c.num_months < 12 then 'no interval: fewer than twelve months'
    end as slope_reason,
    case
        when d.num_after = 0 then null
        when d.lacks_error then 'no interval: a month has a single cluster'
        when d.num_after < 6 then 'no interval: fewer than two complete quarters after the release'
    end as decay_reason
from counted as c
left join decays as d
    on c.model = d.model and c.source = d.source and c.protocol = d.protocol;
