-- Test of each generalisation score against 0.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
-- Units: p_value is two-sided, of the normal distribution of the interval of scylla_scores. NULL if
--   the score has no interval.
-- Source: docs/metrics.md (Puzzles).
create or replace view scylla_score_tests as
select
    model,
    protocol,
    ood_split,
    rules,
    level,
    case when level is null then 'all' else 'level' end as scope,
    score,
    2 * normal_tail(abs(score + score_bias) / nullif(score_error, 0)) as p_value
from internal.scylla_level_figures;
