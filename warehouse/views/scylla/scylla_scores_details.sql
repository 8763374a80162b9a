-- Every column of scylla_scores. Units and NULLs: see that view.
-- bootstrap_low and _high are plain percentiles of the bootstrap over items; they are too low if
--   true gaps are near 0.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
create or replace view internal.scylla_scores_details as
with spread as (
    select
        model,
        protocol,
        ood_split,
        rules,
        level,
        quantile_cont(score, 0.025) as bootstrap_low,
        quantile_cont(score, 0.975) as bootstrap_high
    from internal.scylla_replicate_levels
    group by model, protocol, ood_split, rules, level
)

select
    f.model,
    f.protocol,
    f.ood_split,
    f.rules,
    f.level,
    case when f.level is null then 'all' else 'level' end as scope,
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
    2 * normal_tail(abs(f.score + f.score_bias) / nullif(f.score_error, 0)) as p_value,
    spread.bootstrap_low,
    spread.bootstrap_high,
    f.reason
from internal.scylla_level_figures as f
left join spread
    on
        f.model = spread.model
        and f.protocol = spread.protocol
        and f.ood_split = spread.ood_split
        and f.rules = spread.rules
        and f.level is not distinct from spread.level;
