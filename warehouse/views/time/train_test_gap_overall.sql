-- Mean over sources of bits per byte before and after each model's own cutoff, and of the gap.
-- Grain: one row per model, protocol; only models with a cutoff in the catalogue.
-- Units and columns: as train_test_gap_overall_at.
-- Source: docs/metrics.md (Time).
-- train_test_gap_overall_at has further columns.
create or replace view train_test_gap_overall as
select
    model,
    protocol,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    bits_per_byte_before,
    bits_per_byte_after,
    expected_next,
    expected_next_low,
    expected_next_high,
    num_sources,
    num_months_before,
    num_months_after,
    bits_per_byte_all,
    split_date,
    split_basis
from train_test_gap_overall_at(cast(null as date));
