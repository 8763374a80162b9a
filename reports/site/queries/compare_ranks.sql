-- Mean rank over sources, by model and month.
select
    model,
    month,
    avg(rank) as mean_rank,
    count(*) as num_sources
from monthly_rank
where protocol = $protocol
group by model, month
order by model, month
