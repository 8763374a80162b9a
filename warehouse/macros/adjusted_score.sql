-- How far answers are above guessing: the normal distribution function of their z score.
-- Parameters: accuracy, the share that is correct; expected, the share that a guess gets right;
--   variance, that of one answer: expected * (1 - expected) if it is guessed; num_answers.
-- NULL where the variance is 0. Source: Zhu et al. 2024, equation 3; metrics.md, section 3.
create or replace macro adjusted_score(accuracy, expected, variance, num_answers) as
    normal_cdf(sqrt(num_answers / nullif(variance, 0)) * (accuracy - expected));
