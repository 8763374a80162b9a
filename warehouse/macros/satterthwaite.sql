-- Satterthwaite's degrees of freedom of a linear combination of cells' figures, coefficients c.
-- Parameters, over the combination's cells (s: standard error, n: degrees of freedom):
--   cell_variance, sum(c^2 * s^2), and spread, sum(c^4 * s^4 / n), for Satterthwaite's formula;
--   overlap, the mean square over replicates of sum(c^2 * weight_deviation), over sum(c^4): 1 if no
--     two cells share clusters, (sum(c^2))^2 / sum(c^4) if all cells have the same clusters. The
--     latter is the number of cells that Satterthwaite's formula counts: the combination then has
--     no more degrees of freedom than a single cell.
-- Source: ADR 0016, with a check by simulation.
create or replace macro satterthwaite(cell_variance, spread, overlap) as
    greatest(
        1, coalesce(cell_variance * cell_variance / nullif(spread, 0), 1) / greatest(1, overlap)
    );
