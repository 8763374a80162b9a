-- What published rates are from: publications, sources, half-open window.
with publications as (
    select
        coalesce(reference, 'not stated') as publication,
        string_agg(distinct source, ', ' order by source) as sources,
        min(month) as first_day,
        cast(max(month) + interval 1 month as date) as end_day
    from internal.published_rates
    where is_text
    group by all
)

select
    'published' as protocol,
    [cast(min(first_day) as varchar), cast(max(end_day) as varchar)] as "window",
    null as num_documents,
    null as measured_at,
    'facts of the reference' as licence,
    string_agg(format('{} ({})', publication, sources), '; ' order by publication) as reference
from publications
having count(*) > 0
