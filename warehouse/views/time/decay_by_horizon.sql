-- Rise (in %) of a model's bits per byte 3, 6, 9 and 12 months after its release, and their mean.
-- Grain: one row per model, source, protocol, horizon (3, 6, 9 and 12 months after the release);
--   only models with a release date in the catalogue.
-- Units: base_bits_per_byte is the mean of the six months before release. decay_pct is 100 * (mean
--   of the three months that end at the horizon / base - 1); NULL if a month is missing.
--   decay_mean_pct is the mean of the figures that are not NULL, the same in all four rows. *_low
--   and *_high bound a 95 % interval over time: would other months like these give the same figure?
--   NULL with less than two horizons. Where something is NULL, reason says why.
-- p_value: of no mean decay, by its interval; q_value: Benjamini-Hochberg's over the models and
--   sources of a protocol.
-- Months that get harder for all models count as decay.
-- Source: Zhu et al. (FreshBench), Tables 9, 11, 12; docs/metrics.md (Time, Intervals).
-- Intervals for other documents: internal.decay_figures.
create or replace view decay_by_horizon as
with listed as (
    select
        *,
        unnest([3, 6, 9, 12]) as horizon,
        unnest([decay_3_pct, decay_6_pct, decay_9_pct, decay_12_pct]) as decay_pct,
        unnest(
            [decay_3_pct_low, decay_6_pct_low, decay_9_pct_low, decay_12_pct_low]
        ) as decay_pct_low,
        unnest(
            [decay_3_pct_high, decay_6_pct_high, decay_9_pct_high, decay_12_pct_high]
        ) as decay_pct_high,
        nullif(reason, lacking_documents(null)) as lack
    from internal.decay_figures
)

select
    model,
    source,
    protocol,
    released,
    horizon,
    decay_pct,
    decay_pct_low,
    decay_pct_high,
    decay_mean_pct,
    decay_mean_pct_low,
    decay_mean_pct_high,
    p_value,
    q_value,
    base_bits_per_byte,
    case when decay_pct_low is null or decay_mean_pct_low is null then lack end as reason
from listed;
