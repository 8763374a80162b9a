-- Temporal bias index of likelihood: the slope of bits per byte over the months.
-- Grain: one row per model, source, protocol.
-- Units: bits per byte per month (or year); positive means that newer text costs more.
--   bias_slope = -tbi, so that positive means "better on newer"; the intercept is where
--   year * 12 + month is 0.
-- Source: Zhu et al. (FreshBench), section 3.2; metrics.md, section 2. Reads monthly_loss.
create or replace view tbi_likelihood as
with points as (
    select
        model,
        source,
        protocol,
        year(month) * 12 + month(month) as month_number,
        bits_per_byte
    from monthly_loss
    where bits_per_byte is not null
),

fits as (
    select
        model,
        source,
        protocol,
        count(*) as num_months,
        regr_slope(bits_per_byte, month_number) as slope,
        regr_intercept(bits_per_byte, month_number) as intercept
    from points
    group by model, source, protocol
)

select
    model,
    source,
    protocol,
    num_months,
    case when num_months > 1 then slope end as tbi_per_month,
    case when num_months > 1 then 12 * slope end as tbi_per_year,
    case when num_months > 1 then -slope end as bias_slope,
    case when num_months > 1 then intercept end as intercept
from fits;
