-- Every column of forecast_change_after_release. Units and NULLs: see that view.
-- Grain: one row per model, source, protocol; models of known release.
-- base_adjusted_score and adjusted_change_h_pct: the same for the mean monthly adjusted_score (see
--   forecast_accuracy_monthly), without interval. Zhu et al. do not state how the accuracies of
--   their Table 9 are adjusted.
create or replace view internal.forecast_change_after_release_details as
with changes as (
    select
        s.*,
        b.accuracy as base,
        b.variance as base_variance,
        s.accuracy / nullif(b.accuracy, 0) as ratio,
        100 * (s.adjusted_score / nullif(b.adjusted_score, 0) - 1) as adjusted_pct,
        s.horizon > 0 and b.accuracy > 0 as is_change,
        195.9963984540054e0
        * sqrt(s.variance + pow(ratio, 2) * b.variance) / nullif(b.accuracy, 0) as error
    from internal.release_horizons as s
    left join internal.release_horizons as b
        on s.model = b.model and s.source = b.source and s.protocol = b.protocol and b.horizon = 0
),

summed as (
    select
        model,
        source,
        protocol,
        any_value(released) as released,
        any_value(base) as base_accuracy,
        max(expected_accuracy) filter (where horizon = 0) as expected_base_accuracy,
        coalesce(max(num_questions) filter (where horizon = 0), 0) as num_base_questions,
        cast(coalesce(sum(num_questions) filter (where horizon > 0), 0) as bigint)
            as num_later_questions,
        sum(num_questions * expected_accuracy) filter (where horizon > 0)
        / sum(num_questions) filter (where horizon > 0) as expected_later_accuracy,
        max(ratio) filter (where horizon = 3) as ratio_3,
        max(error) filter (where horizon = 3) as error_3,
        max(ratio) filter (where horizon = 6) as ratio_6,
        max(error) filter (where horizon = 6) as error_6,
        max(ratio) filter (where horizon = 9) as ratio_9,
        max(error) filter (where horizon = 9) as error_9,
        max(ratio) filter (where horizon = 12) as ratio_12,
        max(error) filter (where horizon = 12) as error_12,
        max(adjusted_score) filter (where horizon = 0) as base_adjusted_score,
        max(adjusted_pct) filter (where horizon = 3) as adjusted_change_3_pct,
        max(adjusted_pct) filter (where horizon = 6) as adjusted_change_6_pct,
        max(adjusted_pct) filter (where horizon = 9) as adjusted_change_9_pct,
        max(adjusted_pct) filter (where horizon = 12) as adjusted_change_12_pct,
        avg(adjusted_pct) filter (where horizon > 0) as adjusted_change_mean_pct,
        avg(ratio) filter (where is_change) as ratio_mean,
        195.9963984540054e0
        * sqrt(
            sum(variance) filter (where is_change)
            + any_value(base_variance) * pow(sum(ratio) filter (where is_change), 2)
        ) / any_value(base) / count(*) filter (where is_change) as error_mean
    from changes
    group by model, source, protocol
)

select
    model,
    source,
    protocol,
    released,
    base_accuracy,
    expected_base_accuracy,
    num_base_questions,
    num_later_questions,
    expected_later_accuracy,
    100 * (ratio_3 - 1) as change_3_pct,
    100 * (ratio_3 - 1) - error_3 as change_3_pct_low,
    100 * (ratio_3 - 1) + error_3 as change_3_pct_high,
    100 * (ratio_6 - 1) as change_6_pct,
    100 * (ratio_6 - 1) - error_6 as change_6_pct_low,
    100 * (ratio_6 - 1) + error_6 as change_6_pct_high,
    100 * (ratio_9 - 1) as change_9_pct,
    100 * (ratio_9 - 1) - error_9 as change_9_pct_low,
    100 * (ratio_9 - 1) + error_9 as change_9_pct_high,
    100 * (ratio_12 - 1) as change_12_pct,
    100 * (ratio_12 - 1) - error_12 as change_12_pct_low,
    100 * (ratio_12 - 1) + error_12 as change_12_pct_high,
    100 * (ratio_mean - 1) as change_mean_pct,
    100 * (ratio_mean - 1) - error_mean as change_mean_pct_low,
    100 * (ratio_mean - 1) + error_mean as change_mean_pct_high,
    base_adjusted_score,
    adjusted_change_3_pct,
    adjusted_change_6_pct,
    adjusted_change_9_pct,
    adjusted_change_12_pct,
    adjusted_change_mean_pct,
    case
        when num_base_questions = 0 then 'no question was opened in the six months before release'
        when base_accuracy = 0 then 'no right answer in the six months before release'
        when num_later_questions = 0 then 'no question was opened in the year after release'
    end as reason
from summed;
