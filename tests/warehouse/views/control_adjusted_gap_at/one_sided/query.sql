from internal.control_adjusted_gap_at(date '2025-01-01');
