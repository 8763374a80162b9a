-- ForecastBench's Brier index: 100 is perfect, 50 an even guess between two options, 0 the worst.
-- Parameter: score, a Brier score summed over options, 0 to 2; half of it is the score of a
--   yes-or-no question that ForecastBench has.
-- Source: apply_brier_index_transform of github.com/forecastingresearch/forecastbench.
create or replace macro brier_index(score) as
    100 * (1 - sqrt(score / 2));
