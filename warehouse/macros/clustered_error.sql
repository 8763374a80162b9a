-- The standard error of a cell's bits per byte, by the jackknife over clusters; NULL without one.
-- Parameters: residual, a column of cluster_residual; num_bytes of the cell. It is rounded, so that
--   the last digits do not depend on the number of threads.
create or replace macro clustered_error(residual, num_bytes) as
    case
        when count(residual) = count(*)
            then
                round_digits(
                    sqrt(fsum(residual * residual) * (count(*) - 1) / count(*)) / num_bytes
                )
    end;
