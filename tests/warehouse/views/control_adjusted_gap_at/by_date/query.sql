from internal.control_adjusted_gap_at(date '2024-03-01');
