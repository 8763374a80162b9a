-- How much each model follows the months' difficulty.
-- Grain: one row per model, source, protocol; source NULL: of the mean over sources of text.
-- Units: sensitivity is a factor, with mean 1 over the panel's models and bounds of 0.5 and 1.5
--   before it is divided by the mean. NULL where reason says why.
-- Source: docs/metrics.md (The panel).
create or replace view model_sensitivity as
select
    model,
    source,
    case when source is null then 'all' else 'source' end as scope,
    protocol,
    sensitivity,
    num_months_before + num_months_after as num_months,
    num_documents,
    sensitivity_reason as reason
from internal.panel_effects;
