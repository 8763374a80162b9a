-- Temporal bias index of likelihood: the slope of bits per byte over months.
-- Grain: one row per model, source, protocol.
-- Units: bits per byte per month (or year); positive means that newer text costs more. bias_slope =
--   -tbi_per_month: positive means "better on newer". The intercept is the line at year * 12 +
--   month = 0. *_low and *_high bound a 95 % interval over time: would other months like these say
--   the same? NULL with fewer than 12 months. *_documents: would other documents of these months?
--   Where something is NULL, reason says why; a month of a single cluster: as in train_test_gap.
-- p_value: of no slope, by the interval over time. q_value: Benjamini-Hochberg's over the models
--   and sources of a protocol.
-- Months that get harder or easier for all models are part of the slope: see ageing.
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
),

tested as (
    select
        f.model,
        f.source,
        f.protocol,
        f.num_months,
        f.slope,
        e.error,
        e.document_error,
        e.p_value,
        f.mean - f.slope * f.mean_month as intercept
    from fits as f
    left join internal.slope_errors as e
        on f.model = e.model and f.source = e.scope and f.protocol = e.protocol
),

ranked as (
    select
        *,
        count(p_value) over (partition by protocol) as num_tests,
        row_number() over (
            partition by protocol order by p_value nulls last, model, source
        ) as position
    from tested
)

select
    model,
    source,
    protocol,
    num_months,
    slope as tbi_per_month,
    slope - error as tbi_per_month_low,
    slope + error as tbi_per_month_high,
    p_value,
    false_discovery_rate(p_value, num_tests, position, protocol) as q_value,
    slope - document_error as tbi_per_month_low_documents,
    slope + document_error as tbi_per_month_high_documents,
    12 * slope as tbi_per_year,
    12 * (slope - error) as tbi_per_year_low,
    12 * (slope + error) as tbi_per_year_high,
    -slope as bias_slope,
    intercept,
    slope_reason(num_months, '', protocol, document_error) as reason
from ranked;
