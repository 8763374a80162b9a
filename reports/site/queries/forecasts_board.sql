-- How often each model is right, on all questions and on those from after its cutoff.
-- p_value: of as many right answers by guessing, after the cutoff [probability]
select
    model,
    source,
    protocol,
    accuracy,
    accuracy_low,
    accuracy_high,
    expected_accuracy,
    num_questions,
    accuracy_of_all_questions,
    accuracy_of_all_questions_low,
    accuracy_of_all_questions_high,
    expected_accuracy_of_all_questions,
    num_all_questions,
    num_unparsed,
    reason,
    -- as many right answers or more by guessing
    binomial_tail(accuracy * num_questions, num_questions, expected_accuracy)
        as p_value
from forecast_accuracy
where num_all_questions > 0
order by
    source asc, accuracy desc nulls last, accuracy_of_all_questions desc, model asc, protocol asc
