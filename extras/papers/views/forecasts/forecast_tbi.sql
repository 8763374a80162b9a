-- Temporal Bias Index of accuracy: slope of the adjusted score over the opening date of questions.
-- Grain: one row per model, source, protocol; models of known release, two bins or more.
-- Units and columns: as forecast_tbi_at, with the variance of a guess.
-- Source: docs/metrics.md (Forecasts).
create or replace view papers.forecast_tbi as
select *
from internal.forecast_tbi_at('null');
