-- Mean rank over sources, by model and month.
-- mean_rank: mean over sources of the rank of the month; 1 is the lowest loss [rank]
-- num_sources: sources in the mean [sources]
with ranked as (
    select
        model,
        month,
        rank() over (partition by source, month order by bits_per_byte) as rank
    from monthly_loss
    where protocol = $protocol and bits_per_byte is not null
)

select
    model,
    month,
    avg(rank) as mean_rank,
    count(*) as num_sources
from ranked
group by model, month
order by model, month
