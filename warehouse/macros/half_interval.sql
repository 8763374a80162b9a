-- Half of the 95 % interval of a figure that is a sum of coefficient c times a cell's figure.
-- Parameters, over the figure's cells (s: standard error, n: degrees of freedom):
--   variance, the mean square over replicates of sum(c * deviation); has clusters that come back;
--   cell_variance, sum(c^2 * s^2), and spread, sum(c^4 * s^4 / n), for Satterthwaite's formula;
--   overlap, the mean square over replicates of sum(c^2 * weight_deviation), over sum(c^4): 1 where
--     every cell has clusters of its own, (sum(c^2))^2 / sum(c^4) where all have the same ones: as
--     many cells as Satterthwaite's formula counts, so that they have no more degrees of freedom
--     together than one of them has alone.
-- Source: ADR 0016, where it is checked by simulation.
create or replace macro half_interval(variance, cell_variance, spread, overlap) as
    sqrt(variance)
    * t_975(
        greatest(
            1, coalesce(cell_variance * cell_variance / nullif(spread, 0), 1) / greatest(1, overlap)
        )
    );
