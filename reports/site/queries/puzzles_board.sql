-- Scores of each model over all levels and by level, with the level of the largest gap.
with levels as (
    pivot (
        from scylla_scores
        where rules = 'strict' and ood_split = 'ood' and level is not null
    )
    on level in (1, 2, 3, 4, 5)
    using first(score)
    group by model, protocol
)
select
    s.model, m.parameters, s.protocol, s.score, s.score_low, s.score_high,
    l."1" as level_1, l."2" as level_2, l."3" as level_3, l."4" as level_4, l."5" as level_5,
    c.critical_level, c.status, c.joint_p_value, s.num_puzzles, s.num_expected
from scylla_scores as s
left join levels as l on l.model = s.model and l.protocol = s.protocol
left join scylla_critical_complexity as c
    on c.model = s.model and c.protocol = s.protocol and c.rules = 'strict' and c.ood_split = 'ood'
left join models as m on m.model = s.model
where s.rules = 'strict' and s.ood_split = 'ood' and s.level is null
order by s.score desc nulls last, s.model, s.protocol
