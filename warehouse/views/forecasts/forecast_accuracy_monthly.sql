-- Accuracy of a model's answers, by the month in which the questions were opened.
-- Grain: one row per model, source, protocol, month.
-- Units: shares, 0 to 1. *_low and *_high bound Wilson's 95 % interval; questions count as
--   independent. adjusted_score is the normal distribution function of the z score against
--   guessing. For a guesser, it is uniform between 0 and 1; it has no interval.
--   adjusted_score_observed uses the observed variance of answers, as the paper's equation prints
--   it; NULL if all or none are right (reason). num_before_release, num_test: questions opened
--   before release, after cutoff.
-- Source: Zhu et al. 2024, equations 2 and 3; docs/metrics.md (Forecasts).
create or replace view forecast_accuracy_monthly as
with counted as (
    select
        model,
        source,
        protocol,
        cast(date_trunc('month', opened) as date) as month,
        count(*) as num_questions,
        count(*) filter (where not is_parsed) as num_unparsed,
        count(*) filter (where is_correct) as num_correct,
        count(*) filter (where is_before_release) as num_before_release,
        count(*) filter (where is_test) as num_test,
        avg(expected) as expected_accuracy
    from internal.judged_answers
    group by model, source, protocol, date_trunc('month', opened)
)

select
    model,
    source,
    protocol,
    month,
    num_questions,
    num_before_release,
    num_test,
    num_unparsed,
    num_correct,
    num_correct / num_questions as accuracy,
    wilson_low(num_correct, num_questions) as accuracy_low,
    wilson_high(num_correct, num_questions) as accuracy_high,
    expected_accuracy,
    adjusted_score(accuracy, expected_accuracy, expected_accuracy, num_questions)
        as adjusted_score,
    adjusted_score(accuracy, expected_accuracy, accuracy, num_questions) as adjusted_score_observed,
    case
        when num_correct = num_questions then 'all answers are right: no observed variance'
        when num_correct = 0 then 'no answer is right: no observed variance'
    end as reason
from counted;
