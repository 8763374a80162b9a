-- Why the means over sources of a model's gap and slope are missing, or have no interval over time.
--   For left_out_figures.
-- Grain: one row per model, protocol with losses. A reason is NULL if the figure has an interval.
-- Source: docs/metrics.md (Time, Intervals).
create or replace view internal.overall_reasons as
with models_read as (
    select distinct
        model,
        protocol
    from internal.landed_cells
    union
    select distinct
        model,
        'published' as protocol
    from internal.published_rates
),

sources as (
    select
        l.model,
        l.protocol,
        l.source,
        count(*) as num_months,
        bool_or(l.month <= m.cutoff) and bool_or(l.month > m.cutoff) as has_sides
    from internal.monthly_loss_details as l
    left join main.models as m on l.model = m.model
    where l.is_text and l.bits_per_byte is not null
    group by l.model, l.protocol, l.source
),

texts as (
    select
        model,
        protocol,
        max(num_months) as num_months,
        bool_or(has_sides) as has_sides
    from sources
    group by model, protocol
),

gaps as (
    select
        model,
        protocol,
        count(distinct month) filter (where not is_after) as num_before,
        count(distinct month) filter (where is_after) as num_after
    from internal.split_cells_at(cast(null as date))
    where is_common
    group by model, protocol
),

slopes as (
    select
        model,
        protocol,
        count(distinct month) as num_months
    from internal.slope_cells
    where scope is null
    group by model, protocol
)

select
    r.model,
    r.protocol,
    case
        when starts_with(r.model, 'control:') then 'compressor'
        when m.cutoff is null then 'cutoff unknown'
        when t.model is null then 'no dated text with a figure'
        when not t.has_sides then 'no source with months on both sides of the cutoff'
        when coalesce(least(g.num_before, g.num_after), 0) = 0
            then 'no month on a side of the cutoff that all sources have'
        else gap_reason(g.num_before, g.num_after, r.protocol, 'month', 0)
    end as gap_reason,
    case
        when t.model is null then 'no dated text with a figure'
        when t.num_months < 2 then 'a single month'
        when coalesce(s.num_months, 0) < minimum('months of a line')
            then
                too_few(
                    coalesce(s.num_months, 0), 'month', ' that all sources have', 'months of a line'
                )
        else slope_reason(s.num_months, ' that all sources have', r.protocol, 0)
    end as slope_reason
from models_read as r
left join main.models as m on r.model = m.model
left join texts as t on r.model = t.model and r.protocol = t.protocol
left join gaps as g on r.model = g.model and r.protocol = g.protocol
left join slopes as s on r.model = s.model and r.protocol = s.protocol;
