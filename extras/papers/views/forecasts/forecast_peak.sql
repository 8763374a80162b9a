-- The period of the questions that a model answers best, and its distance to the model's cutoff, as
--   the paper counts periods.
-- Grain: one row per model, source, protocol.
-- Units and columns: as forecast_peak_at, with the paper's periods of about 90 days; peak is the
--   first day of the half-year.
-- Source: Zhu et al. 2024, section 4.2, Tables 8 and 15.
create or replace view papers.forecast_peak as
select *
from papers.forecast_peak_at(null);
