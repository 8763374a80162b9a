-- The paper's scores as printed.
-- level_1: score as printed at level 1 of complexity
-- level_2: score as printed at level 2 of complexity
-- level_3: score as printed at level 3 of complexity
-- level_4: score as printed at level 4 of complexity
-- level_5: score as printed at level 5 of complexity
with printed as (
    select distinct
        published_model as model,
        published_critical_level as critical_level,
        level,
        published_score as score
    from papers.scylla_published
)

select
    model,
    critical_level,
    max(score) filter (level = 1) as level_1,
    max(score) filter (level = 2) as level_2,
    max(score) filter (level = 3) as level_3,
    max(score) filter (level = 4) as level_4,
    max(score) filter (level = 5) as level_5
from printed
group by model, critical_level
order by avg(score) desc, model
