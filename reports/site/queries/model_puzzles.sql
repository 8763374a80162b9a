-- Generalisation by level of complexity; the row without a level is over all levels.
-- p_value: of a score of 0, by the interval's normal distribution.
-- p_value: of a score of 0 or less [probability]
select
    s.model,
    s.protocol,
    coalesce(cast(s.level as varchar), 'all') as level,
    s.score,
    s.score_low,
    s.score_high,
    s.p_value,
    s.id_accuracy,
    s.ood_accuracy,
    s.signed_gap,
    s.num_puzzles,
    s.num_expected
from scylla_scores as s
where s.ood_split = 'ood' and s.rules = 'strict'
order by s.model, s.protocol, level
