-- Test for a difference in accuracy between old questions and recent questions.
-- Grain: one row per model, source, protocol, comparison; questions opened before release.
-- Units: comparison names the earlier sample. The recent sample has the questions of the 20 months
--   before release, or the newer half. Shares of right answers and their difference (95 % interval:
--   Agresti and Caffo) are over all questions. p_proportions and p_ranks are two-sided; they
--   compare only questions with equally many options. p_value is the larger one; 1 if reason
--   has another: directions that differ, too few answers (bias_statistics). p_adjusted is
--   Holm's over the comparisons of a model, source and protocol: at most about 5 % of unbiased
--   models are called biased. bias_class is Nostalgia or Neophilia if p_adjusted is at most 0.05,
--   else Balanced. significance: one star each for 0.05, 0.01 and 0.001.
-- Source: the released analysis of Zhu et al. 2024; Holm 1979; docs/metrics.md (Forecasts).
-- Further columns: internal.forecast_bias_test_details.
create or replace view forecast_bias_test as
select
    model,
    source,
    protocol,
    comparison,
    bias_class,
    difference,
    difference_low,
    difference_high,
    p_value,
    p_adjusted,
    significance,
    accuracy_earlier,
    accuracy_recent,
    num_earlier,
    num_recent,
    recent_from,
    reason
from internal.forecast_bias_test_details;
