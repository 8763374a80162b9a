-- A side with a month of a single document has no interval, and so the gap has none.
select
    scope,
    round(before_error, 6) as before_error,
    round(after_error, 6) as after_error,
    round(gap_error, 6) as gap_error,
    round(next_error, 6) as next_error
from internal.split_errors_at(date '2024-03-01');
