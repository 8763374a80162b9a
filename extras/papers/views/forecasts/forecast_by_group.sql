-- Accuracy of a model's answers, by group of questions.
-- Grain: one row per model, source, protocol, question_group; `none`: no tag has a group.
-- Units: shares, 0 to 1; *_low and *_high bound a 95 % interval (Wilson's); adjusted_score as in
--   forecast_accuracy_monthly. Questions opened after the cutoff, and all: as in forecast_accuracy.
-- Source: Zhu et al. 2024, section 4.4 and appendix G.
create or replace view papers.forecast_by_group as
with counted as (
    select
        model,
        source,
        protocol,
        question_group,
        count(*) as num_questions,
        count(*) filter (where is_correct) as num_correct,
        avg(expected) as expected_accuracy,
        count(*) filter (where is_test) as num_test_questions,
        count(*) filter (where is_test and is_correct) as num_test_correct,
        bool_or(is_test is not null) as is_dated
    from internal.grouped_answers
    group by model, source, protocol, question_group
)

select
    model,
    source,
    protocol,
    question_group,
    num_test_correct / nullif(num_test_questions, 0) as accuracy,
    wilson_low(num_test_correct, num_test_questions) as accuracy_low,
    wilson_high(num_test_correct, num_test_questions) as accuracy_high,
    num_test_questions as num_questions,
    num_correct / num_questions as accuracy_of_all_questions,
    wilson_low(num_correct, num_questions) as accuracy_of_all_questions_low,
    wilson_high(num_correct, num_questions) as accuracy_of_all_questions_high,
    expected_accuracy as expected_accuracy_of_all_questions,
    adjusted_score(
        num_correct / num_questions, expected_accuracy, expected_accuracy, num_questions
    ) as adjusted_score_of_all_questions,
    num_questions as num_all_questions,
    case
        when num_test_questions > 0 then null
        when is_dated then 'no question of the group was opened after the cutoff'
        else 'cutoff and release unknown'
    end as reason
from counted;
