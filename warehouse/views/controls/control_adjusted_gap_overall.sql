-- Mean over sources of the control-adjusted gap at each model's own cutoff.
-- Grain: one row per model, protocol, control; only models with a known cutoff.
-- Units and columns: as control_adjusted_gap_overall_at.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
create or replace view control_adjusted_gap_overall as
select *
from control_adjusted_gap_overall_at(cast(null as date));
