-- A month of a single document: the interval is of the months' scatter, and remains.
select
    model,
    estimated_cutoff,
    estimated_cutoff_low is not null as has_low,
    estimated_cutoff_high is not null as has_high
from estimated_cutoff;
