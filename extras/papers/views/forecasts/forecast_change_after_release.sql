-- Change (in %) of a model's accuracy 3, 6, 9 and 12 months after its release.
-- Grain: one row per model, source, protocol; only models with a known release.
-- Units: base_accuracy is the share of right answers for the six months before release.
--   change_h_pct is 100 * (share for the three months that end h months after release / base - 1).
--   It is NULL without questions, or if no answer of the base is right. change_mean_pct is the mean
--   of the changes that are not NULL. *_low and *_high: 95 % interval (delta method; all changes
--   share the error of the base). expected_*_accuracy: share expected from guessing, which depends
--   on the numbers of options.
-- Source: Zhu et al. 2024, Table 9; docs/metrics.md (Forecasts).
-- Further columns: internal.forecast_change_after_release_details.
create or replace view papers.forecast_change_after_release as
select
    model,
    source,
    protocol,
    released,
    change_mean_pct,
    change_mean_pct_low,
    change_mean_pct_high,
    change_3_pct,
    change_6_pct,
    change_9_pct,
    change_12_pct,
    base_accuracy,
    expected_base_accuracy,
    expected_later_accuracy,
    num_base_questions,
    num_later_questions,
    reason
from internal.forecast_change_after_release_details;
