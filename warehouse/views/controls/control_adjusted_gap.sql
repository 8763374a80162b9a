-- Gap of each model at its own cutoff, less the gap of a control on the same documents.
-- Grain: one row per model, source, protocol, control; only models with a known cutoff.
-- Units and columns: as control_adjusted_gap_at; split_date is the first day after the cutoff.
-- Source: docs/metrics.md (Control-adjusted figures and change points).
-- control_adjusted_gap_at has further columns.
create or replace view control_adjusted_gap as
select
    model,
    source,
    protocol,
    control,
    adjusted_gap,
    adjusted_gap_low,
    adjusted_gap_high,
    bits_per_byte_gap,
    control_bits_per_byte_gap,
    num_months_before,
    num_months_after,
    num_months_left_out,
    is_default_control,
    is_text,
    split_date,
    split_basis
from control_adjusted_gap_at(cast(null as date));
