-- Gap, growth and sensitivity of each model in the panel of language models, fitted at publication.
-- Grain: one row per model, protocol, source; source NULL: of the mean over sources of text. Every
--   language model with dated figures has a row. Empty in the writer's own database.
-- Units: bits per byte, growth a month. A figure is NULL where the panel cannot tell it (*_reason).
-- Source: warehouse/estimates/panel.py, which has the formulas.
create table if not exists internal.panel_effects (
    model varchar not null,
    source varchar,
    protocol varchar not null,
    num_months_before bigint not null, -- in the panel, up to the cutoff
    num_months_after bigint not null,
    num_documents bigint, -- shared with the models held against; NULL for published rates
    sensitivity double, -- to the month's difficulty; mean 1 over models
    sensitivity_reason varchar, -- why it is NULL
    gap double, -- average over the months after
    gap_error double, -- standard error
    gap_reason varchar, -- why gap is NULL
    growth double, -- of the gap, a month
    growth_error double,
    growth_reason varchar,
    degrees_of_freedom double not null -- of the intervals
);
