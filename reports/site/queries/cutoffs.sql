-- Stated cutoffs against measured ones, of models with losses and of published rates.
select
    r.*,
    coalesce(r.source, 'all sources') as sources,
    coalesce(r.measured_cutoff, r.reason) as told,
    strftime(s.first_cutoff, '%Y-%m') || ', then ' || strftime(s.second_cutoff, '%Y-%m')
        as two_cutoffs
from cutoff_registry as r
left join second_cutoff as s
    on
        r.model = s.model
        and r.protocol = s.protocol
        and r.source is not distinct from s.source
where r.protocol in ($protocol, 'published')
-- A single source is all sources.
qualify r.source is null or count(r.source) over (partition by r.model, r.protocol) > 1
order by r.source nulls first, r.model, r.protocol
