-- Generalisation by level of complexity; the row without a level is over all levels.
select
    model,
    protocol,
    coalesce(cast(level as varchar), 'all') as level,
    score,
    score_low,
    score_high,
    id_accuracy,
    ood_accuracy,
    signed_gap,
    num_puzzles,
    num_expected
from scylla_scores
where ood_split = 'ood' and rules = 'strict'
order by model, protocol, level
