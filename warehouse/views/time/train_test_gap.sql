-- Bits per byte before and after each model's own cutoff, and the gap between them.
-- Grain: one row per model, source, protocol; only models whose cutoff the catalogue knows.
-- Units and columns: as train_test_gap_at; split_date is the first day after the cutoff month.
-- Source: metrics.md, section 2. Reads train_test_gap_at.
create or replace view train_test_gap as
select *
from train_test_gap_at(cast(null as date));
