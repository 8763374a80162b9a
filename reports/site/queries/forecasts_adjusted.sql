-- Scores on questions from after each model's cutoff, adjusted for the difficulty of the questions.
-- brier_index: 100 is perfect; NULL without probabilities [0 to 100]
-- min_days_before_close: least days from the end of the model's knowledge to the closing [days]
select
    model,
    protocol,
    min_days_before_close,
    adjusted_accuracy,
    adjusted_accuracy_low,
    adjusted_accuracy_high,
    expected_accuracy,
    brier_index,
    brier_index_low,
    brier_index_high,
    expected_brier_index,
    num_answers,
    num_questions
from forecast_adjusted
where adjusted_accuracy_low is not null and scope = 'all'
order by min_days_before_close asc, adjusted_accuracy desc, model asc, protocol asc
