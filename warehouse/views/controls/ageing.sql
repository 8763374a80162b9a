-- How much the gap of each model grows with the months after its cutoff.
-- Grain: one row per model, source, protocol; source NULL: of the mean over sources of text.
-- Units: bits per byte a month or a year, as estimated by the panel. *_low and *_high bound a 95 %
--   interval over months. q_value: see panel_tests. All are NULL where reason says why.
-- Source: docs/metrics.md (The panel).
create or replace view ageing as
select
    t.model,
    t.source,
    case when t.source is null then 'all' else 'source' end as scope,
    t.protocol,
    t.value as growth_per_month,
    t.value_low as growth_per_month_low,
    t.value_high as growth_per_month_high,
    12 * t.value as growth_per_year,
    12 * t.value_low as growth_per_year_low,
    12 * t.value_high as growth_per_year_high,
    t.p_value,
    t.q_value,
    e.num_months_after,
    t.reason
from panel_tests as t
inner join internal.panel_effects as e
    on t.model = e.model and t.source is not distinct from e.source and t.protocol = e.protocol
where t.effect = 'growth';
