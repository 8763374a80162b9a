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
order by r.model, r.protocol, r.source nulls first
