-- Variance of a mean of months, for other months: by the jackknife that leaves out one block.
-- Parameters: squares, the sum of the squared changes without each block; num_blocks. Student's t
--   has num_blocks - 1 degrees of freedom.
-- Source: docs/metrics.md (Intervals); Kuensch 1989, "The jackknife and the bootstrap for general
--   stationary observations", Annals of Statistics 17.
create or replace macro jackknife_variance(squares, num_blocks) as
    squares * (num_blocks - 1) / nullif(num_blocks, 0);
