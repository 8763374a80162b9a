-- Published rates before and in the last year, in percent: means over months, then sources.
-- stated_cutoff: last month of training text, of the catalogue [date]
-- rate_before: size of the compressed text; mean over months before the last year [% of the text]
-- rate_after: size of the compressed text; mean over months of the last year [% of the text]
-- change: rate_after less rate_before [percentage points]
-- num_sources: sources in the means [sources]
-- first_year: first year with rates [year]
-- last_year: last year with rates [year]
with ends as (
    select
        year(min(month)) as first_year,
        year(max(month)) as last_year
    from monthly_loss
    where protocol = 'published'
),

texts as (
    select distinct source
    from monthly_loss
    where is_text
),

gaps as (
    select
        model,
        count(*) as num_sources,
        100 * avg(bits_per_byte_before) / 8 as rate_before,
        100 * avg(bits_per_byte_after) / 8 as rate_after,
        100 * avg(bits_per_byte_gap) / 8 as change
    from train_test_gap_at((select make_date(e.last_year, 1, 1) from ends as e))
    where
        protocol = 'published' and bits_per_byte_gap is not null
        and source in (select t.source from texts as t)
    group by model
)

select
    g.model,
    m.family,
    m.parameters,
    m.cutoff as stated_cutoff,
    m.cutoff_provenance,
    c.cutoff_text,
    c.estimated_cutoff,
    c.estimated_cutoff_low,
    c.estimated_cutoff_high,
    g.rate_before,
    g.rate_after,
    g.change,
    g.num_sources,
    e.first_year,
    e.last_year,
    case
        when is_compressor(g.model) then 'a compressor has no cutoff'
        when m.cutoff is null then 'no cutoff is stated or inferred'
    end as stated_reason,
    if(is_compressor(g.model), 'a compressor has no cutoff', c.reason) as cutoff_reason
from gaps as g
cross join ends as e
left join models as m on g.model = m.model
left join estimated_cutoff as c
    on g.model = c.model and c.scope = 'all' and c.protocol = 'published'
order by g.model like 'control:%' asc, g.change desc, g.model asc
