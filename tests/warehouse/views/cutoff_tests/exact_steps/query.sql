select
    model,
    source,
    cutoff,
    last_datable,
    num_months,
    is_found
from internal.cutoff_tests;
