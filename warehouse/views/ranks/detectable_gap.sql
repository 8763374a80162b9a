-- The smallest train/test gap that can be detected with a source's monthly volume of text.
-- Also the volume needed to detect a small gap.
-- Grain: one row per model, source, protocol, num_months_each_side (3, 6 and 12).
-- Units and columns: as detectable_gap_at, which also tells what more documents would change.
-- Source: docs/metrics.md (Power).
create or replace view detectable_gap as
select *
from detectable_gap_at(0);
