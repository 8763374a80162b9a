-- The control-adjusted gap of each model at its own cutoff, as the mean over sources.
-- Grain: one row per model, protocol, control; only models whose cutoff is known.
-- Units and columns: as control_adjusted_gap_overall_at.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view control_adjusted_gap_overall as
select *
from control_adjusted_gap_overall_at(cast(null as date));
