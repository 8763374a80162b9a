-- How many models have published rates, and of which years; no row if none has.
select
    count(distinct model) as num_models,
    year(min(month)) as first_year,
    year(max(month)) as last_year
from monthly_loss
where protocol = 'published' and is_text and model not like 'control:%'
having num_models > 0
