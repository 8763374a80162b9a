-- Every document costs the control 2 bits per byte more: the difference is certain.
select
    model,
    round(adjusted_gap, 9) + 0 as adjusted_gap,
    round(adjusted_gap_low, 6) + 0 as low,
    round(adjusted_gap_high, 6) + 0 as high,
    degrees_of_freedom > 1 as has_freedom
from internal.control_adjusted_gap_at(date '2024-03-01');
