-- The models that view headline compares, with the cells of the same documents that all of them
--   have. Grain, units and choice of models: as compared_cells_at.
-- Grain: one row per model, source, month. For other views to read.
-- Source: docs/metrics.md (Headline, New text).
create or replace view compared_cells as
select *
from internal.compared_cells_at(cast(null as date), cast(null as date), 'new');
