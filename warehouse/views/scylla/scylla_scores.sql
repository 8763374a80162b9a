-- How well a model generalises, level by level: S = accuracy out of distribution - clipped gap.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
-- Units: scores are -1 to 1, means over the puzzles of the level whose gaps are clipped one by one;
--   probes are in none. score_low and _high bound a 95 % interval that allows for the bias of
--   clipping; bootstrap_low and _high are the plain percentiles of the bootstrap over items, which
--   lie too low where true gaps are next to 0. NULL: no puzzle of the level has answers.
-- Source: Qi et al. 2024; metrics.md, Puzzles.
--   Reads scylla_level_figures, scylla_replicate_levels.
create or replace view scylla_scores as
with spread as (
    select
        model,
        protocol,
        ood_split,
        rules,
        level,
        quantile_cont(score, 0.025) as bootstrap_low,
        quantile_cont(score, 0.975) as bootstrap_high
    from scylla_replicate_levels
    group by model, protocol, ood_split, rules, level
)

select
    f.model,
    f.protocol,
    f.ood_split,
    f.rules,
    f.level,
    f.num_puzzles,
    f.num_expected,
    f.num_insufficient,
    f.num_puzzles = f.num_expected as is_complete,
    f.id_accuracy,
    f.ood_accuracy,
    f.signed_gap,
    f.gap,
    f.score,
    case
        when f.score_error is not null
            then greatest(f.score + f.score_bias - 1.959963984540054e0 * f.score_error, -1)
    end as score_low,
    case
        when f.score_error is not null
            then least(f.score + f.score_bias + 1.959963984540054e0 * f.score_error, 1)
    end as score_high,
    spread.bootstrap_low,
    spread.bootstrap_high
from scylla_level_figures as f
left join spread
    on
        f.model = spread.model
        and f.protocol = spread.protocol
        and f.ood_split = spread.ood_split
        and f.rules = spread.rules
        and f.level is not distinct from spread.level;
