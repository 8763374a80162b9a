-- Bits per byte before and after each model's own cutoff, and the gap between them.
-- Grain: one row per model, source, protocol; source NULL, where scope is all, is the mean over
--   sources. Only models with a cutoff in the catalogue.
-- Units and columns: as train_test_gap_at, split after the cutoff month.
-- *_low and *_high: would other months like these give the same figure? *_documents: would other
--   documents of these months? Drift of all models counts as gap here: see control_adjusted_gap.
-- Source: docs/metrics.md (Time, Intervals).
-- train_test_gap_at has further columns, such as expected_next and split_date.
create or replace view train_test_gap as
select
    model,
    source,
    scope,
    protocol,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    p_value,
    q_value,
    bits_per_byte_gap_low_documents,
    bits_per_byte_gap_high_documents,
    bits_per_byte_before,
    bits_per_byte_after,
    num_sources,
    num_months_before,
    num_months_after,
    reason
from train_test_gap_at(cast(null as date));
