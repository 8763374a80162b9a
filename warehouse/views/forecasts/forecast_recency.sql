-- Accuracy that counts for more the later a question was opened.
-- Grain: one row per model, source, protocol.
-- Units: recency_score is the sum over correct answers of the number of days since 2015-01-01 over
--   90, rounded half to even, over 40: it grows with the number of questions. weighted_accuracy is
--   the mean accuracy of quarters, weighted from 0 in the first one of 2015 to 1 in the newest one
--   of the source and protocol. *_low and *_high bound a 95 % interval, answers of a quarter taken
--   as independent draws of its accuracy (of two right ones and two wrong ones more: Agresti and
--   Coull).
-- Source: Zhu et al. 2024, appendix E and Table 14; docs/metrics.md (Forecasts).
create or replace view forecast_recency as
with quarters as (
    select
        model,
        source,
        protocol,
        datediff('quarter', date '2015-01-01', opened) as quarter,
        count(*) as num_questions,
        count(*) filter (where is_correct) as num_correct,
        -- Whole numbers, divided last: what is printed is met to its last digit.
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
    greatest(0, weighted_accuracy - accuracy_error) as weighted_accuracy_low,
    least(1, weighted_accuracy + accuracy_error) as weighted_accuracy_high
from summed;
