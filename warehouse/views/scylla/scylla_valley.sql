-- Accuracy in and out of distribution and the gap between them, by level of complexity.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5).
-- Units: shares: means over the puzzles of the level. gap is the mean of the clipped gaps,
--   signed_gap the mean of the signed gaps, with a 95 % interval. p_value is one-sided: the
--   probability of such a signed gap if the true gap is 0. joint_p_value allows for all levels with
--   answers (Bonferroni).
-- Source: Qi et al. 2024, figure 5; docs/metrics.md (Puzzles).
create or replace view internal.scylla_valley as
with tested as (
    select
        *,
        normal_cdf(-smoothed_gap / signed_gap_error) as p_value,
        count(score) over (partition by model, protocol, ood_split, rules) as num_levels
    from internal.scylla_level_figures
    where level is not null
)

select
    model,
    protocol,
    ood_split,
    rules,
    level,
    num_puzzles,
    num_expected,
    num_insufficient,
    id_accuracy,
    ood_accuracy,
    gap,
    signed_gap,
    smoothed_gap - 1.959963984540054e0 * signed_gap_error as signed_gap_low,
    smoothed_gap + 1.959963984540054e0 * signed_gap_error as signed_gap_high,
    p_value,
    case when p_value is not null then least(p_value * num_levels, 1) end as joint_p_value,
    reason
from tested;
