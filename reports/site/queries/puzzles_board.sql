-- Scores of each model over all levels and by level, with the level of the largest gap.
-- level_1: score, -1 to 1, at level 1 of complexity
-- level_1_low: lower end of the 95 % interval
-- level_1_high: upper end of the 95 % interval
-- level_1_reason: why the score or its interval is missing
-- level_2: score, -1 to 1, at level 2 of complexity
-- level_2_low: lower end of the 95 % interval
-- level_2_high: upper end of the 95 % interval
-- level_2_reason: why the score or its interval is missing
-- level_3: score, -1 to 1, at level 3 of complexity
-- level_3_low: lower end of the 95 % interval
-- level_3_high: upper end of the 95 % interval
-- level_3_reason: why the score or its interval is missing
-- level_4: score, -1 to 1, at level 4 of complexity
-- level_4_low: lower end of the 95 % interval
-- level_4_high: upper end of the 95 % interval
-- level_4_reason: why the score or its interval is missing
-- level_5: score, -1 to 1, at level 5 of complexity
-- level_5_low: lower end of the 95 % interval
-- level_5_high: upper end of the 95 % interval
-- level_5_reason: why the score or its interval is missing
-- score_reason: why the score or its interval is missing
with scores as (
    select
        model,
        protocol,
        max(score) filter (level is null) as score,
        max(score_low) filter (level is null) as score_low,
        max(score_high) filter (level is null) as score_high,
        max(reason) filter (level is null) as score_reason,
        max(score) filter (level = 1) as level_1,
        max(score_low) filter (level = 1) as level_1_low,
        max(score_high) filter (level = 1) as level_1_high,
        max(reason) filter (level = 1) as level_1_reason,
        max(score) filter (level = 2) as level_2,
        max(score_low) filter (level = 2) as level_2_low,
        max(score_high) filter (level = 2) as level_2_high,
        max(reason) filter (level = 2) as level_2_reason,
        max(score) filter (level = 3) as level_3,
        max(score_low) filter (level = 3) as level_3_low,
        max(score_high) filter (level = 3) as level_3_high,
        max(reason) filter (level = 3) as level_3_reason,
        max(score) filter (level = 4) as level_4,
        max(score_low) filter (level = 4) as level_4_low,
        max(score_high) filter (level = 4) as level_4_high,
        max(reason) filter (level = 4) as level_4_reason,
        max(score) filter (level = 5) as level_5,
        max(score_low) filter (level = 5) as level_5_low,
        max(score_high) filter (level = 5) as level_5_high,
        max(reason) filter (level = 5) as level_5_reason,
        max(num_puzzles) filter (level is null) as num_puzzles,
        max(num_expected) filter (level is null) as num_expected
    from scylla_scores
    where rules = 'strict' and ood_split = 'ood'
    group by model, protocol
)

select
    s.*,
    m.parameters,
    case when c.status = 'found' then array_to_string(c.tied_levels, ', ') end as critical_level,
    c.status,
    c.joint_p_value
from scores as s
left join models as m on s.model = m.model
left join scylla_critical_complexity as c
    on
        s.model = c.model
        and s.protocol = c.protocol
        and c.rules = 'strict'
        and c.ood_split = 'ood'
order by s.score desc nulls last, s.model asc, s.protocol asc
