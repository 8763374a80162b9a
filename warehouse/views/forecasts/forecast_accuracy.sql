-- Accuracy of a model's answers, on questions opened after its cutoff, and on all questions.
-- Grain: one row per model, source, protocol.
-- Units: shares, 0 to 1. *_low and *_high bound Wilson's 95 % interval; questions count as
--   independent. expected_* is the share expected from guessing. Only questions opened after the
--   cutoff month count, or from the release on if the cutoff is unknown; NULL without one (reason).
--   *_of_all_questions and num_unparsed: of all questions. Unparsed answers are wrong.
-- Source: Zhu et al. 2024, equation 2; docs/metrics.md (Forecasts).
create or replace view forecast_accuracy as
with counted as (
    select
        model,
        source,
        protocol,
        any_value(released) as released,
        any_value(cutoff) as cutoff,
        count(*) as num_questions,
        count(*) filter (where not is_parsed) as num_unparsed,
        count(*) filter (where is_correct) as num_correct,
        avg(expected) as expected_accuracy,
        count(*) filter (where is_test) as num_test_questions,
        count(*) filter (where is_correct and is_test) as num_test_correct,
        avg(expected) filter (where is_test) as expected_test_accuracy
    from internal.judged_answers
    group by model, source, protocol
)

select
    model,
    source,
    protocol,
    released,
    cutoff,
    num_test_correct / nullif(num_test_questions, 0) as accuracy,
    wilson_low(num_test_correct, num_test_questions) as accuracy_low,
    wilson_high(num_test_correct, num_test_questions) as accuracy_high,
    expected_test_accuracy as expected_accuracy,
    num_test_questions as num_questions,
    num_unparsed,
    num_correct / num_questions as accuracy_of_all_questions,
    wilson_low(num_correct, num_questions) as accuracy_of_all_questions_low,
    wilson_high(num_correct, num_questions) as accuracy_of_all_questions_high,
    expected_accuracy as expected_accuracy_of_all_questions,
    num_questions as num_all_questions,
    case
        when num_test_questions > 0 then null
        when cutoff is not null then 'no question was opened after the cutoff'
        when released is not null then 'no question was opened after the release'
        else 'cutoff and release unknown'
    end as reason
from counted;
