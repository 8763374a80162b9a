-- Scores of models on questions from after their cutoffs, adjusted for the questions' difficulty.
-- Grain: one row per source, model, protocol, min_days_before_close; source NULL if scope is `all`.
-- Units: adjusted_accuracy is a share; brier_index is 0 to 100: 100 is perfect, 50 is an even guess
--   between two options. Both are what the model would have on the num_questions that the compared
--   models answered. So models that answered other questions compare. *_low and *_high: 95 %
--   interval (jackknife over days of resolution, Student's t). expected_* is what guessing gives on
--   the same questions. min_days_before_close: only questions that were closed so many days after
--   the end of the model's knowledge count. reason: why there is no figure, or no interval.
-- Source: ForecastBench; docs/metrics.md (Forecasts); warehouse/estimates/questions.py.
-- Further columns: internal.forecast_adjusted_details.
create or replace view forecast_adjusted as
select
    scope,
    source,
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
    num_questions,
    reason
from internal.forecast_adjusted_details;
