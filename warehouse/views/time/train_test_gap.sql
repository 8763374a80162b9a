-- Bits per byte before and after each model's own cutoff, and the gap between them.
-- Grain: one row per model, source, protocol; only models with a cutoff in the catalogue.
-- Units and columns: as train_test_gap_at; split_date is the first day after the cutoff month.
-- Source: docs/metrics.md (Time).
-- train_test_gap_at has further columns.
create or replace view train_test_gap as
select
    model,
    source,
    protocol,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    bits_per_byte_before,
    bits_per_byte_after,
    expected_next,
    expected_next_low,
    expected_next_high,
    num_months_before,
    num_months_after,
    bits_per_byte_all,
    split_date,
    split_basis
from train_test_gap_at(cast(null as date));
