-- The figures of headline over all months: text that models were trained on counts, too.
-- Grain: one row per compared model. The cells are chosen anew, so that models may differ.
-- Not a comparison of models on new text: basis says so in each row.
-- Units and intervals: as in headline.
-- Source: docs/metrics.md (Headline, New text).
create or replace view internal.headline_all_months as
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
    saved_share,
    saved_share_low,
    saved_share_high,
    reason
from main.headline_at(cast(null as date), cast(null as date), months := 'all');
