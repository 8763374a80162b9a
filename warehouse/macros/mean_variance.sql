-- Variance of the mean of consecutive months, in squared shocks of a month.
-- Parameters: memory, as month_memory gives it, below 1; num_months, at least 1.
-- Shocks are a first-order autoregression: their correlation is memory^(months between them).
-- Source: docs/metrics.md (Intervals).
create or replace macro mean_variance(memory, num_months) as
    (
        num_months * (1 - memory * memory) - 2 * memory * (1 - power(memory, num_months))
    ) / power(num_months * (1 - memory), 2);
