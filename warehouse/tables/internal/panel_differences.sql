-- Standard errors of the differences of two models' gaps, and of their growths, in one panel.
-- Grain: one row per model, other_model, protocol, source, effect (gap or growth); model is before
--   other_model in the alphabet; source NULL: of the mean over sources of text. Only models with
--   both figures. Empty in the writer's own database.
-- Units: bits per byte, growth a month.
-- Source: warehouse/estimates/panel.py, which has the formulas.
create table if not exists internal.panel_differences (
    model varchar not null,
    other_model varchar not null,
    source varchar,
    protocol varchar not null,
    effect varchar not null,
    difference_error double not null -- standard error
);
