-- Rise (in %) of a model's bits per byte 3, 6, 9 and 12 months after its release.
-- Grain: one row per model, source, protocol; only models with a release date in the catalogue.
-- Units: base_bits_per_byte is the mean of the six months before release. decay_h_pct is 100 *
--   (mean of the three months that end h months after release / base - 1); NULL if a month is
--   missing. decay_mean_pct is the mean of the figures that are not NULL. *_low and *_high bound a
--   95 % interval over time: would other months like these say the same? NULL with less than two
--   horizons. View decay_by_horizon has the intervals of all of them. Where something is NULL,
--   reason says why. p_value: of no mean decay, by that interval; q_value: Benjamini-Hochberg's
--   over the models and sources of a protocol.
-- Months that get harder for all models count as decay.
-- Source: Zhu et al. (FreshBench), Tables 9, 11, 12; docs/metrics.md (Time, Intervals).
-- Further columns, such as intervals for other documents: internal.decay_after_release_details.
create or replace view decay_after_release as
select
    model,
    source,
    protocol,
    released,
    decay_mean_pct,
    decay_mean_pct_low,
    decay_mean_pct_high,
    p_value,
    q_value,
    decay_3_pct,
    decay_6_pct,
    decay_9_pct,
    decay_12_pct,
    decay_12_pct_low,
    decay_12_pct_high,
    base_bits_per_byte,
    nullif(reason, lacking_documents(null)) as reason
from internal.decay_after_release_details;
