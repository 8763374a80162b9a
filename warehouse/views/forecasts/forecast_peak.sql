-- The quarter of the questions that a model answers best, and its distance to the model's cutoff.
-- Grain: one row per model, source, protocol.
-- Units and columns: as forecast_peak_at, with periods of three months.
-- Source: Zhu et al. 2024, section 4.2.
create or replace view papers.forecast_peak as
select *
from papers.forecast_peak_at(3);
