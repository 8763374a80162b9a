-- How much of a month's shock the next month keeps: the parameter of a first-order autoregression.
-- Parameters: correlation of the residuals of neighbouring months, NULL if there are none;
--   num_fitted, the number of means (or lines' coefficients) that the residuals are of; num_months.
-- Residuals of k fitted means have a correlation that is too low by about k (1 + 4 memory) / n.
--   This is solved for the memory, which is kept between 0 and 0.9. The number of months must be
--   above four times num_fitted.
-- Source: docs/metrics.md (Intervals); Kendall 1954, "Note on bias in the estimation of
--   autocorrelation", Biometrika 41.
create or replace macro month_memory(correlation, num_fitted, num_months) as
    least(
        0.9e0,
        greatest(
            0e0,
            (coalesce(correlation, 0e0) + num_fitted / num_months)
            / (1 - 4 * num_fitted / num_months)
        )
    );
