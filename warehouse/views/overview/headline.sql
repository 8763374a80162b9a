-- One figure per model: bits per byte of new text under the default protocol, with the rank.
-- Grain: one row per compared model.
-- Units: bits_per_byte is the unweighted mean over sources of the unweighted mean over months. It
--   covers only the (source, month) cells that all compared models have, after the latest cutoff of
--   the ranked models (basis); num_months counts their different months. eligible_cells and
--   compared_cells define which cells and models count. left_out_figures has the others.
-- rank: NULL for compressors, which are shown for comparison, and for a model of unknown cutoff,
--   which may have seen these months in training.
-- low and high bound 95 % intervals over time: would other months like these say the same?
--   *_documents: would other documents of these months? The former is the wider of the latter and
--   of a jackknife over blocks of three calendar months. It is NULL if a source has fewer than four
--   blocks; *_documents is NULL if a cell has no pooled error (pooled_errors). reason says so.
-- An interval of a rank is from 1 + (significantly better models) to all - (significantly worse
--   models), as in monthly_rank.
-- Source: docs/metrics.md (Likelihood, Headline, New text, Intervals); the mean over sources is
--   Uncheatable Eval's.
-- headline_at has the same figures over a window of months, or over all months.
create or replace view headline as
select
    model,
    bits_per_byte,
    bits_per_byte_low,
    bits_per_byte_high,
    bits_per_byte_low_documents,
    bits_per_byte_high_documents,
    rank,
    rank_low,
    rank_high,
    rank_low_documents,
    rank_high_documents,
    basis,
    num_sources,
    num_months,
    num_unmeasured,
    cutoff,
    reason
from headline_at(cast(null as date), cast(null as date));
