-- What a model shares with the control has no error in the difference, but what replicates round.
select
    model,
    source,
    protocol,
    control,
    standard_error < 1e-6 as is_zero
from internal.control_gap_errors_at(date '2024-03-01');
