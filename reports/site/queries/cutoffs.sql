-- Stated cutoffs against measured ones, of models with losses and of published rates.
-- measured_cutoff: last month with training text, by the losses; "at or after" if its end is open
-- measured_cutoff_low: earliest month of the 95 % interval
-- measured_cutoff_high: latest month of the 95 % interval
-- stated_reason: why there is no stated cutoff
-- outside_reason: why the stated month is not held against the measured one
with registry as (
    select
        e.model,
        e.source,
        e.scope,
        e.protocol,
        m.role,
        e.catalogue_cutoff as stated_cutoff,
        e.cutoff_provenance,
        e.cutoff_text as measured_cutoff,
        e.estimated_cutoff_low as measured_cutoff_low,
        e.estimated_cutoff_high as measured_cutoff_high,
        e.is_contradicted,
        e.detectable_change,
        e.basis,
        e.reason
    from estimated_cutoff as e
    left join models as m on e.model = m.model
    where not is_compressor(e.model)
)

select
    r.*,
    coalesce(r.source, 'all sources') as sources,
    coalesce(r.measured_cutoff, r.reason) as told,
    case when r.stated_cutoff is null then 'no cutoff is stated or inferred' end as stated_reason,
    case
        when r.is_contradicted is null then coalesce(stated_reason, 'no cutoff is measured')
    end as outside_reason,
    strftime(s.first_cutoff, '%Y-%m') || ', then ' || strftime(s.second_cutoff, '%Y-%m')
        as two_cutoffs
from registry as r
left join second_cutoff as s
    on
        r.model = s.model
        and r.protocol = s.protocol
        and r.source is not distinct from s.source
where r.protocol in ($protocol, 'published')
-- A single source is all sources.
qualify r.source is null or count(r.source) over (partition by r.model, r.protocol) > 1
order by r.source nulls first, r.model, r.protocol
