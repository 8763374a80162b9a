-- Where the losses of a model rise twice, as no single change explains: over all sources, and by
-- source.
-- sources: name of the source, or all of them
select
    s.model,
    s.source,
    coalesce(s.source, 'all sources') as sources,
    s.first_cutoff,
    s.first_cutoff_low,
    s.first_cutoff_high,
    s.second_cutoff,
    s.second_cutoff_low,
    s.second_cutoff_high,
    s.q_value,
    r.basis
from second_cutoff as s
inner join estimated_cutoff as r
    on
        s.model = r.model
        and s.protocol = r.protocol
        and s.source is not distinct from r.source
where s.protocol = $protocol and s.second_cutoff is not null
-- A single source is all sources.
qualify s.source is null or count(r.source) over (partition by s.model) > 1
order by s.model, s.source nulls first
