-- Temporal bias index of likelihood: the slope of bits per byte over months.
-- Grain: one row per model, source, protocol; source NULL, where scope is all, is the mean over
--   sources. It is of models that have a source of text with two months or more.
-- Units: bits per byte per month (or year); positive means that newer text costs more. *_low and
--   *_high bound a 95 % interval over time: would other months like these give the same figure?
--   NULL with fewer than 12 months. *_documents: would other documents of these months? Where
--   something is NULL, reason says why; a month of a single cluster: as in train_test_gap.
-- p_value: of no slope, by the interval over time. q_value: Benjamini-Hochberg's over the models
--   and sources of a protocol; the means over sources are a family of their own.
-- The mean of slopes is unweighted, over sources of text with two months or more, and over the
--   months that all of them have. If one has 12 months, sources with fewer are left out.
--   num_sources and num_months count both; NULL below two common months. Images and audio are left
--   out.
-- Months that get harder or easier for all models are part of the slope: see ageing.
-- Source: Zhu et al. (FreshBench), section 3.2; mean over sources as in Uncheatable Eval;
--   docs/metrics.md (Likelihood, Time, Intervals).
create or replace view tbi_likelihood as
with fits as (
    select
        model,
        scope as source,
        protocol,
        count(distinct month) as num_months,
        sum(coefficient * bits_per_byte) as slope
    from internal.slope_cells
    group by model, scope, protocol
),

listed as (
    select
        model,
        source,
        protocol,
        1 as num_sources
    from fits
    where source is not null
    union all
    select
        model,
        null as source,
        protocol,
        count(*) as num_sources
    from internal.lasting_sources
    group by model, protocol
),

tested as (
    select
        l.model,
        l.source,
        l.protocol,
        l.num_sources,
        coalesce(f.num_months, 0) as num_months,
        f.slope,
        e.error,
        e.document_error,
        e.p_value
    from listed as l
    left join fits as f
        on
            l.model = f.model
            and l.source is not distinct from f.source
            and l.protocol = f.protocol
    left join internal.slope_errors as e
        on
            l.model = e.model
            and l.source is not distinct from e.scope
            and l.protocol = e.protocol
),

ranked as (
    select
        *,
        count(p_value) over (partition by protocol, source is null) as num_tests,
        row_number() over (
            partition by protocol, source is null order by p_value nulls last, model, source
        ) as position
    from tested
)

select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    num_sources,
    num_months,
    slope as tbi_per_month,
    slope - error as tbi_per_month_low,
    slope + error as tbi_per_month_high,
    p_value,
    false_discovery_rate(p_value, num_tests, position, row(protocol, source is null)) as q_value,
    slope - document_error as tbi_per_month_low_documents,
    slope + document_error as tbi_per_month_high_documents,
    12 * slope as tbi_per_year,
    12 * (slope - error) as tbi_per_year_low,
    12 * (slope + error) as tbi_per_year_high,
    case
        when source is not null then slope_reason(num_months, '', protocol, document_error)
        when num_months < minimum('months of a line')
            then too_few(num_months, 'month', ' that all sources have', 'months of a line')
        else slope_reason(num_months, ' that all sources have', protocol, document_error)
    end as reason
from ranked;
