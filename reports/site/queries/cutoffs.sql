-- Stated cutoffs against measured ones, of models with losses and of published rates.
-- stated_reason: why there is no stated cutoff
-- outside_reason: why the stated month is not held against the measured one
select
    r.*,
    coalesce(r.source, 'all sources') as sources,
    coalesce(r.measured_cutoff, r.reason) as told,
    'no cutoff is stated or inferred' as stated_reason,
    if(r.stated_cutoff is null, stated_reason, 'no cutoff is measured') as outside_reason,
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
