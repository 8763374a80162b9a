-- One figure per model: bits per byte of new text under the default protocol, with the rank.
-- Grain: one row per compared model.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months. It
--   covers only the (source, month) cells that all compared models have, after the latest cutoff of
--   the ranked models (basis); num_months counts their different months. eligible_cells and
--   compared_cells define which cells and models count. left_out_figures has the others.
-- rank: NULL for compressors, which are shown for comparison, and for a model of unknown cutoff,
--   which may have seen these months in training.
-- low and high bound 95 % intervals. interval_basis: months (would other months like these give the
--   same figure?), or documents (would other documents of these months?) while months are too few.
-- resolution: half the width of the interval of a difference, median over pairs of ranked models.
-- saved_share: 1 - the model's figure / that of control:zstd.
-- Source: docs/metrics.md (Likelihood, Headline, New text, Intervals); the mean over sources is
--   Uncheatable Eval's.
-- headline_at has the same figures over a window of months, or over all months.
create or replace view headline as
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
from internal.headline_details;
