-- Stated cutoffs against measured ones, of models with losses and of published rates.
select
    r.*,
    coalesce(r.source, 'all sources') as sources,
    coalesce(r.measured_cutoff, r.reason) as told
from cutoff_registry as r
where r.protocol in ($protocol, 'published')
order by r.model, r.protocol, r.source nulls first
