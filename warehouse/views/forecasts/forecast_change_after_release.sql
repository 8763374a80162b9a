-- By how much (in %) a model's accuracy differs 3, 6, 9 and 12 months after its release.
-- Grain: one row per model, source, protocol; models of known release.
-- Units: base_accuracy is the share right of questions opened in the six months before release;
--   change_h_pct is 100 * (share right of those opened in the three months that end h months after
--   release / base - 1), NULL where there are none, or where nothing of the base was right;
--   change_mean_pct is the mean of those that are there. *_low and *_high bound a 95 % interval
--   (delta method; all changes of a model share the base's error). Accuracies of questions with
--   other numbers of options do not compare: expected_*_accuracy is what a guess gets right.
-- Source: Zhu et al. 2024, Table 9; docs/metrics.md (Forecasts).
-- Further columns: internal.forecast_change_after_release_details.
create or replace view forecast_change_after_release as
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
    num_later_questions
from internal.forecast_change_after_release_details;
