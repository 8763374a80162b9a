-- Mean over sources of the temporal bias index of likelihood: how steeply bits per byte rise.
-- Grain: one row per model, protocol; only models that have a source with two months or more.
-- Units: bits per byte per month (or year); positive means that newer text costs more. The mean of
--   slopes is unweighted, over sources of text with two months or more, and over the months that
--   all of them have. num_sources and num_months count both; NULL below two common months. Images
--   and audio are left out. bias_slope = -tbi_per_month. *_low, *_high and
--   p_value: as in tbi_likelihood. q_value is over the models of a protocol.
-- Source: Zhu et al. (FreshBench), section 3.2; mean over sources as in Uncheatable Eval;
--   docs/metrics.md (Likelihood, Time, Intervals).
create or replace view tbi_likelihood_overall as
with lasting as (
    select
        model,
        protocol,
        source
    from internal.monthly_loss_details
    where bits_per_byte is not null and is_text
    group by model, protocol, source
    having count(*) > 1
),

num_lasting as (
    select
        model,
        protocol,
        count(*) as num_sources
    from lasting
    group by model, protocol
),

fits as (
    select
        model,
        protocol,
        count(distinct month) as num_months,
        sum(coefficient * bits_per_byte) as slope
    from internal.slope_cells
    where scope is null
    group by model, protocol
),

tested as (
    select
        n.model,
        n.protocol,
        n.num_sources,
        coalesce(f.num_months, 0) as num_months,
        f.slope,
        e.error,
        e.document_error,
        e.p_value
    from num_lasting as n
    left join fits as f on n.model = f.model and n.protocol = f.protocol
    left join internal.slope_errors as e
        on n.model = e.model and n.protocol = e.protocol and e.scope is null
),

ranked as (
    select
        *,
        count(p_value) over (partition by protocol) as num_tests,
        row_number() over (partition by protocol order by p_value nulls last, model) as position
    from tested
)

select
    model,
    protocol,
    num_sources,
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
    case
        when num_months < 2 then 'fewer than two months that all sources have'
        else slope_reason(num_months, ' that all sources have', protocol, document_error)
    end as reason
from ranked;
