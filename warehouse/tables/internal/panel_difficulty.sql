-- Difficulty of each month for language models, from the panel, fitted at publication.
-- Grain: one row per protocol, source, month; source NULL: of the mean over sources of text. Empty
--   in the writer's own database.
-- Units: bits per byte, less the mean over the panel's months.
-- Source: warehouse/estimates/panel.py, which has the formulas.
create table if not exists internal.panel_difficulty (
    source varchar,
    protocol varchar not null,
    month date not null, -- first day
    num_models bigint not null, -- that enter the panel and have a figure of the month
    difficulty double, -- NULL where the models cannot tell it from their gaps
    difficulty_error double, -- standard error
    degrees_of_freedom double not null,
    num_thermometers bigint not null, -- with a cutoff before the window
    thermometer_difficulty double, -- mean over thermometers of figure less own mean
    compressor_difficulty double -- figure of control:zstd less its mean
);

-- For databases of before this column.
alter table internal.panel_difficulty add column if not exists compressor_difficulty double;
