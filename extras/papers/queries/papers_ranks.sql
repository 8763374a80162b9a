-- Rank of each ranked model by month, over all sources of the board and without Wikipedia's.
-- rank: by the mean over sources; 1 is the lowest loss [rank]
-- rank_without: by the mean over sources other than Wikipedia [rank]
-- model: model, as in view models
-- month: first day of the month [date]
with means as (
    select
        model,
        month,
        avg(bits_per_byte) as bits_per_byte,
        avg(bits_per_byte) filter (where source not like 'wikipedia%') as without_wikipedia,
        bool_or(source like 'wikipedia%') as has_wikipedia
    from compared_cells
    where is_ranked
    group by model, month
)

select
    model,
    month,
    rank() over (partition by month order by bits_per_byte) as rank,
    rank() over (partition by month order by without_wikipedia) as rank_without
from means
where has_wikipedia and without_wikipedia is not null
order by model, month
