-- A model's accuracy on a puzzle in distribution and out of distribution.
-- Grain: one row per model, puzzle, protocol, ood_split, rules.
-- Units: accuracies are shares. signed_gap = id_accuracy - ood_accuracy; gap = signed_gap, or 0 if
--   negative; score = ood_accuracy - gap, -1 to 1. signed_gap_low to _high is a 95 % interval of
--   paired items. Half a pair of each kind is added (Agresti and Min), so that the interval has a
--   width even if all answers are right. NULL: nothing was asked.
-- Source: Qi et al. 2024; Agresti and Min 2005, "Simple improved confidence intervals for comparing
--   matched proportions"; docs/metrics.md (Puzzles).
-- Further columns: internal.scylla_puzzle_scores_details.
create or replace view internal.scylla_puzzle_scores as
select
    model,
    puzzle,
    protocol,
    ood_split,
    rules,
    score,
    gap,
    signed_gap,
    signed_gap_low,
    signed_gap_high,
    id_accuracy,
    ood_accuracy,
    smoothed_gap,
    num_pairs,
    cell_status,
    level
from internal.scylla_puzzle_scores_details;
