-- Quality of a model's probabilities: Brier score, log score, calibration; also the crowd's Brier
--   score.
-- Grain: one row per model, source, protocol; models that give probabilities.
-- Units: brier_score is the mean of squared differences, summed over options: 0 to 2; 0.5 for a
--   guess between two options. log_score is the mean of -ln(probability of the outcome), in nats.
--   Probabilities below 0.0001 count as 0.0001; num_ruled_out counts them. calibration_error is the
--   mean over answers of |probability - accuracy| of their bin. It uses the num_binned answers with
--   a known probability of the choice. *_low and *_high: 95 % interval (Student's t), limited to at
--   least 0, and for brier_score at most 2. crowd_brier_score and model_brier_score_there: over the
--   num_crowd questions with both scores. All scores are NULL if num_unknown > 0: right answers
--   always reveal the outcome, so the remaining answers would be a biased sample (reason).
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
    model_brier_score_there,
    reason
from internal.forecast_calibration_details;
