-- Gap and growth of each model over all sources, held against other models, as text for a table.
-- Parameter: $protocol.
select
    g.model,
    format('{:+.3f}', g.adjusted_gap) as gap,
    format('{:+.3f} … {:+.3f}', g.adjusted_gap_low, g.adjusted_gap_high) as gap_interval,
    format('{:+.3f}', a.growth_per_year) as growth_per_year,
    format('{:+.3f} … {:+.3f}', a.growth_per_year_low, a.growth_per_year_high) as growth_interval,
    coalesce(g.basis, g.reason) as basis
from control_adjusted_gap as g
left join ageing as a on g.model = a.model and g.protocol = a.protocol and a.source is null
where g.protocol = $protocol and g.scope = 'all'
order by g.model;
