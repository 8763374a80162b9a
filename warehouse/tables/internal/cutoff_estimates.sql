-- The best change in each model's curve, as an estimate of its cutoff, fitted at publication.
-- Grain: one row per model, protocol, source; source NULL: of the mean over sources of text. Every
--   language model with dated figures has a row. Empty in the writer's own database.
-- Units: months as first days. Figures are NULL where reason says why.
-- Source: warehouse/estimates/cutoffs.py, which has the formulas.
create table if not exists internal.cutoff_estimates (
    model varchar not null,
    source varchar,
    protocol varchar not null,
    basis varchar, -- panel or compressor
    num_months bigint not null,
    cutoff date, -- the last month with training text
    cutoff_low date, -- NULL: no lower end
    cutoff_high date, -- NULL: no upper end
    onset date, -- the first month with less training text
    onset_low date,
    onset_high date,
    jump double, -- bits per byte
    p_value double, -- of no change
    last_datable date, -- the last cutoff whose interval can have an upper end
    reason varchar, -- why there is no estimate
    note varchar, -- of a curve that is not one ramp
    step_error double, -- standard error of a step's size, over the months that can be dated
    num_free bigint, -- degrees of freedom of the test
    first_datable date, -- the first cutoff whose interval can have a lower end
    first_rise date, -- the last month before the first of two rises
    first_rise_low date, -- NULL: no lower end
    first_rise_high date, -- NULL: no upper end
    second_rise date,
    second_rise_low date,
    second_rise_high date,
    second_p_value double, -- of a single rise
    num_told bigint, -- months that other curves tell
    ramp_error double -- as step_error, of ramps of eight months
);

-- For databases of before these columns.
alter table internal.cutoff_estimates add column if not exists note varchar;
alter table internal.cutoff_estimates add column if not exists step_error double;
alter table internal.cutoff_estimates add column if not exists num_free bigint;
alter table internal.cutoff_estimates add column if not exists first_datable date;
alter table internal.cutoff_estimates add column if not exists first_rise date;
alter table internal.cutoff_estimates add column if not exists first_rise_low date;
alter table internal.cutoff_estimates add column if not exists first_rise_high date;
alter table internal.cutoff_estimates add column if not exists second_rise date;
alter table internal.cutoff_estimates add column if not exists second_rise_low date;
alter table internal.cutoff_estimates add column if not exists second_rise_high date;
alter table internal.cutoff_estimates add column if not exists second_p_value double;
alter table internal.cutoff_estimates add column if not exists num_told bigint;
alter table internal.cutoff_estimates add column if not exists ramp_error double;
