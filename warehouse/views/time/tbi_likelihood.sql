-- Temporal bias index of likelihood: the slope of bits per byte over months.
-- Grain: one row per model, source, protocol.
-- Units: bits per byte per month (or year); positive means that newer text costs more. bias_slope =
--   -tbi_per_month: positive means "better on newer". The intercept is the line at year * 12 +
--   month = 0. *_low and *_high bound a 95 % interval (slope_errors); NULL with fewer than 8
--   months, or if a month has a single cluster.
-- Source: Zhu et al. (FreshBench), section 3.2; docs/metrics.md (Time, Intervals).
create or replace view tbi_likelihood as
with fits as (
    select
        model,
        source,
        protocol,
        count(*) as num_months,
        sum(coefficient * bits_per_byte) as slope,
        avg(bits_per_byte) as mean,
        avg(month_number) as mean_month
    from internal.slope_cells
    where scope is not null
    group by model, source, protocol
)

select
    f.model,
    f.source,
    f.protocol,
    f.num_months,
    f.slope as tbi_per_month,
    12 * f.slope as tbi_per_year,
    -f.slope as bias_slope,
    f.mean - f.slope * f.mean_month as intercept,
    f.slope - e.error as tbi_per_month_low,
    f.slope + e.error as tbi_per_month_high,
    12 * (f.slope - e.error) as tbi_per_year_low,
    12 * (f.slope + e.error) as tbi_per_year_high
from fits as f
left join internal.slope_errors as e
    on f.model = e.model and f.source = e.scope and f.protocol = e.protocol;
