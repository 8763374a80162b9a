-- Score of answers compared with guessing: the normal distribution function of their z score.
-- Parameters: accuracy, the share of right answers; expected, the share of right guesses; share,
--   for the variance share * (1 - share) of one answer (for a guess, share = expected);
--   num_answers.
-- NULL if the variance is 0. Source: Zhu et al. 2024, equation 3; docs/metrics.md (Forecasts).
create or replace macro adjusted_score(accuracy, expected, share, num_answers) as
    normal_cdf(sqrt(num_answers / nullif(share * (1 - share), 0)) * (accuracy - expected));
