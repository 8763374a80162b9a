-- Months that alternate have no memory: the variance is 3 / 10 = 0.3, that of the gap 0.3 / 3.
-- 4.302653 is the quantile of Student's t with 12 / 3 - 2 degrees of freedom. Three blocks of b and
-- two of c are too few.
select
    model,
    scope,
    degrees_of_freedom,
    round(before_error, 6) as before_error,
    round(after_error, 6) as after_error,
    round(gap_error, 6) as gap_error,
    round(next_error, 6) as next_error,
    round(gap_standard_error, 6) as standard_error
from internal.own_month_errors;
