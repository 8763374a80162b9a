-- Temporal bias index of likelihood as the mean over sources: how steeply bits per byte rise.
-- Grain: one row per model, protocol; only models that have a source with two months or more.
-- Units: bits per byte per month (or year); positive means that newer text costs more: the
--   unweighted mean of the sources' slopes. Only sources with two months or more count, over the
--   months that all of these have; num_sources and num_months say what is left, and the slope is
--   NULL where that is less than two months. Images and audio are left out. bias_slope = -tbi.
-- Source: Zhu et al. (FreshBench), section 3.2; mean over sources as in Uncheatable Eval;
--   metrics.md, sections 1 and 2. Reads monthly_loss.
create or replace view tbi_likelihood_overall as
with points as (
    select
        model,
        protocol,
        source,
        month,
        year(month) * 12 + month(month) as month_number,
        bits_per_byte
    from monthly_loss
    where bits_per_byte is not null and is_text
),

lasting as (
    select
        model,
        protocol,
        source
    from points
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

common_months as (
    select
        p.model,
        p.protocol,
        p.month
    from points as p
    semi join lasting as l
        on p.model = l.model and p.protocol = l.protocol and p.source = l.source
    inner join num_lasting as n on p.model = n.model and p.protocol = n.protocol
    group by p.model, p.protocol, p.month
    having count(*) = any_value(n.num_sources)
),

source_slopes as (
    select
        p.model,
        p.protocol,
        p.source,
        count(*) as num_months,
        case when count(*) > 1 then regr_slope(p.bits_per_byte, p.month_number) end as slope
    from points as p
    semi join lasting as l
        on p.model = l.model and p.protocol = l.protocol and p.source = l.source
    semi join common_months as c
        on p.model = c.model and p.protocol = c.protocol and p.month = c.month
    group by p.model, p.protocol, p.source
),

means as (
    select
        model,
        protocol,
        max(num_months) as num_months,
        avg(slope) as slope
    from source_slopes
    group by model, protocol
)

select
    n.model,
    n.protocol,
    n.num_sources,
    coalesce(m.num_months, 0) as num_months,
    m.slope as tbi_per_month,
    12 * m.slope as tbi_per_year,
    -m.slope as bias_slope
from num_lasting as n
left join means as m on n.model = m.model and n.protocol = m.protocol;
