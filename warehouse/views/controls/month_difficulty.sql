-- How difficult each month's text is for language models, beside what others say of it.
-- Grain: one row per source, protocol, month; source NULL: of the mean over sources of text.
-- Units: bits per byte, less the mean over the months. difficulty: of the panel, for a model of
--   mean sensitivity; *_low and *_high bound a 95 % interval over months; NULL where the models
--   cannot tell it from their gaps. compressor_difficulty: of control:zstd. thermometer_difficulty:
--   of models with role thermometer in the catalogue and a cutoff before the first month.
-- Source: docs/metrics.md (The panel).
create or replace view month_difficulty as
select
    source,
    protocol,
    month,
    difficulty,
    difficulty - t_975(degrees_of_freedom) * difficulty_error as difficulty_low,
    difficulty + t_975(degrees_of_freedom) * difficulty_error as difficulty_high,
    num_models,
    compressor_difficulty,
    thermometer_difficulty,
    num_thermometers
from internal.panel_difficulty;
