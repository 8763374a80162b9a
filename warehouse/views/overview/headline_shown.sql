-- The figures of headline with the one interval that a page shows.
-- Grain: one row per compared model.
-- Units and intervals: as in headline. interval_basis: months (would other months like these say
--   the same?), or documents (would other documents of these months?) while months are too few.
-- next_*, resolution and saved_share: as in headline_at.
-- Source: docs/metrics.md (Headline, New text).
create or replace view headline_shown as
from headline_shown_at(cast(null as date), cast(null as date), 'new');
