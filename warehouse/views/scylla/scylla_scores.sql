-- How well a model generalises, level by level: S = accuracy out of distribution - clipped gap.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
-- Units: scores are -1 to 1, means over the puzzles of the level whose gaps are clipped one by one;
--   probes are in none. score_low and _high bound a 95 % interval that allows for the bias of
--   clipping; bootstrap_low and _high are the plain percentiles of the bootstrap over items, which
--   lie too low where true gaps are next to 0. NULL: no puzzle of the level has answers.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
--  
-- Further columns: internal.scylla_scores_details.
create or replace view scylla_scores as
select
    model,
    protocol,
    ood_split,
    rules,
    level,
    score,
    score_low,
    score_high,
    gap,
    signed_gap,
    id_accuracy,
    ood_accuracy,
    is_complete,
    num_puzzles,
    num_expected,
    num_insufficient
from internal.scylla_scores_details;
