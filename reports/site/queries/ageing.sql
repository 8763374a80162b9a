-- How fast the gap of each model grows, over all sources.
select
    model,
    growth_per_year,
    growth_per_year_low,
    growth_per_year_high
from ageing
where protocol = $protocol and scope = 'all' and growth_per_year_low is not null
order by growth_per_year, model
