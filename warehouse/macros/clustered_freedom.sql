-- Satterthwaite's degrees of freedom of clustered_error; NULL without an error.
-- Parameter: residual, a column of cluster_residual. With log-normal lengths, few clusters carry
--   most of the error; the degrees of freedom account for their number.
create or replace macro clustered_freedom(residual) as
    case
        when count(residual) = count(*)
            then
                least(
                    count(*) - 1,
                    coalesce(
                        round_digits(
                            fsum(residual * residual) * fsum(residual * residual)
                            / nullif(fsum(residual * residual * residual * residual), 0)
                        ),
                        'inf'
                    )
                )
    end;
