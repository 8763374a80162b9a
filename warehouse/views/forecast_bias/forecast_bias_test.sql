-- Does a model answer questions from long before its release better or worse than recent ones?
-- Grain: one row per model, source, protocol, comparison; questions opened before release.
-- Units: comparison names the earlier sample; the recent one is of the 20 months before release, or
--   the newer half. Shares right, and their difference with a 95 % interval (Agresti and Caffo),
--   are of all questions; p_proportions and p_ranks are two-sided and compare like with like,
--   questions of as many options. p_value is the larger of the two; 1 where they disagree on the
--   direction, and where there are too few answers for them (see bias_statistics). p_adjusted is
--   Holm's over the comparisons of a model, source and protocol: together they call a model biased
--   that is not in about 5 % of cases at most. bias_class is Nostalgia or Neophilia where
--   p_adjusted is at most 0.05 and Balanced otherwise; significance has a star each for 0.05, 0.01
--   and 0.001.
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
    recent_from
from internal.forecast_bias_test_details;
