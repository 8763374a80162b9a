-- As around 2024-03-01, the first day after the cutoff month.
select
    scope,
    round(before_error, 6) as before_error,
    round(after_error, 6) as after_error,
    round(gap_error, 6) as gap_error,
    round(next_error, 6) as next_error
from internal.own_split_errors;
