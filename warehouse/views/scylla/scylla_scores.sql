-- Generalisation score by level of complexity: S = accuracy out of distribution - clipped gap.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
-- Units: scores are -1 to 1: means over the puzzles of the level, with gaps clipped per puzzle.
--   Probes are in no mean. score_low and _high bound a 95 % interval corrected for the bias of
--   clipping. p_value is two-sided, of a score of 0, by the normal distribution of that interval.
--   NULL: no puzzle of the level has answers.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
-- Further columns, such as the clipped gap: internal.scylla_scores_details.
create or replace view scylla_scores as
select
    model,
    protocol,
    ood_split,
    rules,
    level,
    scope,
    score,
    score_low,
    score_high,
    p_value,
    signed_gap,
    id_accuracy,
    ood_accuracy,
    num_puzzles,
    num_expected,
    num_insufficient,
    reason
from internal.scylla_scores_details;
