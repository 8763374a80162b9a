-- Accuracy with a higher weight for questions that were opened later.
-- Grain: one row per model, source, protocol.
-- Units: recency_score sums the age weight over right answers. The weight is the days from
--   2015-01-01 to the opening / 90, rounded half to even, / 40. weighted_accuracy is a weighted
--   mean of the quarters' accuracies. Weights are from 0 (first quarter of 2015) to 1 (newest
--   quarter of source and protocol). *_low and *_high: 95 % interval; answers of a quarter count as
--   independent draws, with two right and two wrong answers added (Agresti and Coull).
-- Source: Zhu et al. 2024, appendix E and Table 14; docs/metrics.md (Forecasts).
create or replace view papers.forecast_recency as
with quarters as (
    select
        model,
        source,
        protocol,
        datediff('quarter', date '2015-01-01', opened) as quarter,
        count(*) as num_questions,
        count(*) filter (where is_correct) as num_correct,
        -- Sum of whole numbers, divided last: equals published figures to the last digit.
        sum(round_even((opened - date '2015-01-01') / 90.0, 0)) filter (where is_correct) as score,
        sum(pow(round_even((opened - date '2015-01-01') / 90.0, 0) / 40, 2)) as squared_weights
    from internal.judged_answers
    group by model, source, protocol, quarter
),

weighted as (
    select
        *,
        num_correct / num_questions as accuracy,
        (num_correct + 2) / (num_questions + 4) * (1 - (num_correct + 2) / (num_questions + 4))
            as variance,
        greatest(0, quarter)
        / nullif(max(quarter) over (partition by source, protocol), 0) as weight
    from quarters
),

summed as (
    select
        model,
        source,
        protocol,
        cast(sum(num_questions) as bigint) as num_questions,
        count(*) as num_quarters,
        coalesce(sum(score), 0) / 40 as recency_score,
        1.959963984540054e0 * sqrt(sum(squared_weights * variance)) as score_error,
        sum(weight * accuracy) / nullif(sum(weight), 0) as weighted_accuracy,
        1.959963984540054e0 * sqrt(sum(weight * weight * variance / num_questions))
        / nullif(sum(weight), 0) as accuracy_error
    from weighted
    group by model, source, protocol
)

select
    model,
    source,
    protocol,
    num_questions,
    num_quarters,
    recency_score,
    recency_score - score_error as recency_score_low,
    recency_score + score_error as recency_score_high,
    weighted_accuracy,
    -- greatest() and least() would ignore the NULL of an unknown figure.
    case
        when accuracy_error > weighted_accuracy then 0 else weighted_accuracy - accuracy_error
    end as weighted_accuracy_low,
    case
        when weighted_accuracy + accuracy_error > 1 then 1 else weighted_accuracy + accuracy_error
    end as weighted_accuracy_high,
    case
        when weighted_accuracy is null then 'no question was opened after the first quarter of 2015'
    end as reason
from summed;
