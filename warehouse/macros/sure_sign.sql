-- Sign of a difference between two models if significant at 5 % (one-sided), else NULL.
-- Parameters: p_value, two-sided; difference; num_models, for Bonferroni's correction over
--   num_models - 1 comparisons. A two-sided level of 10 % is a one-sided level of 5 %.
-- Source: docs/metrics.md (Ranks).
create or replace macro sure_sign(p_value, difference, num_models) as
    case when p_value * (num_models - 1) <= 0.1 then sign(difference) end;
