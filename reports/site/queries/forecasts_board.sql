-- How often each model is right, on all questions and on those from after its cutoff.
-- p_value: of as many right answers by guessing, after the cutoff [probability]
select
    model,
    source,
    protocol,
    test_accuracy,
    test_accuracy_low,
    test_accuracy_high,
    expected_test_accuracy,
    num_test_questions,
    accuracy,
    accuracy_low,
    accuracy_high,
    expected_accuracy,
    num_questions,
    num_unparsed,
    -- as many right answers or more by guessing
    binomial_tail(test_accuracy * num_test_questions, num_test_questions, expected_test_accuracy)
        as p_value
from forecast_accuracy
where num_questions > 0
order by source asc, test_accuracy desc nulls last, accuracy desc, model asc, protocol asc
