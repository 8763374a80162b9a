-- Mean rank over sources, by model and month, of the ranked models and cells of the board.
-- mean_rank: mean over sources of the rank of the month; 1 is the lowest loss [rank]
-- num_sources: sources in the mean [sources]
with ranked as (
    select
        model,
        month,
        rank() over (partition by source, month order by bits_per_byte) as rank
    from compared_cells
    where is_ranked
)

select
    model,
    month,
    avg(rank) as mean_rank,
    count(*) as num_sources
from ranked
group by model, month
order by model, month
