-- How good a model's probabilities are: Brier score, log score, calibration; the crowd's beside it.
-- Grain: one row per model, source, protocol; models that give probabilities.
-- Units: brier_score is the mean of the squared differences summed over options, 0 to 2 (0.5 is a
--   guess between two); log_score the mean of -ln of the probability of the outcome, in nats,
--   probabilities below 0.0001 taken as that (num_ruled_out counts the outcomes given less);
--   calibration_error is the mean over answers of the difference between probability and accuracy
--   of their bin, of the num_binned answers whose choice has a known probability; bins has the rows
--   of forecast_reliability. *_low and *_high bound a 95 % interval of the mean (Student's t), cut
--   off at 0, and at 2 for brier_score. crowd_brier_score is over the num_crowd questions for which
--   both are known, model_brier_score_there the model's over the same. There are no scores while
--   num_unknown outcomes are not known: right answers always tell it, and are no fair sample.
-- Source: Brier 1950; Good 1952; docs/metrics.md (Forecasts).
-- Further columns: internal.forecast_calibration_details.
create or replace view forecast_calibration as
select
    model,
    source,
    protocol,
    brier_score,
    brier_score_low,
    brier_score_high,
    log_score,
    log_score_low,
    log_score_high,
    calibration_error,
    num_crowd,
    num_brier,
    num_answers,
    num_unknown,
    crowd_brier_score,
    model_brier_score_there
from internal.forecast_calibration_details;
