-- The gap of each model at its own cutoff less the gap of a control on the same documents.
-- Grain: one row per model, source, protocol, control; only models whose cutoff is known.
-- Units and columns: as control_adjusted_gap_at; split_date is the first day after the cutoff.
-- Source: metrics.md, section 5. Reads control_adjusted_gap_at.
create or replace view control_adjusted_gap as
select *
from control_adjusted_gap_at(cast(null as date));
