-- Each model's place on the plane of generalization and robustness, split at its own cutoff.
-- Grain: one row per model, source, protocol; source NULL is the mean over sources of text. Only
--   models whose cutoff the catalogue knows.
-- Units and columns: as generalization_robustness_at.
-- Source: Li et al. 2024, Figure 2b; metrics.md, section 2. Reads generalization_robustness_at.
create or replace view generalization_robustness as
select *
from generalization_robustness_at(cast(null as date));
