-- The figures of headline with the one interval that a page shows.
-- Grain: one row per compared model.
-- Units and intervals: as in headline. interval_basis: months (would other months like these say
--   the same?), or documents (would other documents of these months?) while months are too few.
-- resolution and saved_share: as in headline_at.
-- Source: docs/metrics.md (Headline, New text).
create or replace view headline_shown as
select
    model,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high,
    rank,
    rank_low,
    rank_high,
    rank_set,
    basis,
    num_sources,
    num_months,
    interval_basis,
    resolution,
    saved_share,
    saved_share_low,
    saved_share_high,
    reason
from internal.headline_shown_details;
