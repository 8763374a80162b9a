-- Bits per byte before and after each model's own cutoff, and the gap, as the mean over sources.
-- Grain: one row per model, protocol; only models whose cutoff the catalogue knows.
-- Units and columns: as train_test_gap_overall_at.
-- Source: metrics.md, section 2. Reads train_test_gap_overall_at.
create or replace view train_test_gap_overall as
select *
from train_test_gap_overall_at(cast(null as date));
