-- How often a model answers forecasting questions right, before and after its cutoff.
-- p_value: of as many right answers by guessing, after the cutoff [probability]
select
    model,
    source,
    protocol,
    num_questions,
    num_unparsed,
    accuracy,
    accuracy_low,
    accuracy_high,
    expected_accuracy,
    num_test_questions,
    test_accuracy,
    test_accuracy_low,
    test_accuracy_high,
    -- as many right answers or more by guessing
    binomial_tail(test_accuracy * num_test_questions, num_test_questions, expected_test_accuracy)
        as p_value
from forecast_accuracy
where num_questions > 0
order by model, source, protocol
