-- How far each month of a model's curve lies below both sides, fitted at publication.
-- Grain: one row per model, protocol, source, month; source NULL: of the mean over sources of text.
--   Empty in the writer's own database.
-- Units: bits per byte. Figures are NULL where reason says why.
-- Source: warehouse/estimates/contamination.py, which has the formulas.
create table if not exists internal.month_shortfalls (
    model varchar not null,
    source varchar,
    protocol varchar not null,
    month date not null, -- first day
    bits_per_byte double not null,
    shortfall double, -- relative to the months before and after, whichever is less
    shortfall_error double, -- standard error
    degrees_of_freedom double, -- of shortfall / shortfall_error
    reason varchar -- why there is no test
);
