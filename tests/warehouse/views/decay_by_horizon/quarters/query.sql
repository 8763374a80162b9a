-- The texts of decay_figures/intervals. b has one horizon, and so no interval.
select
    model,
    horizon,
    round(decay_pct, 3) as pct,
    round(decay_pct_low, 3) as low,
    round(decay_pct_high, 3) as high,
    reason is null as has_no_reason
from decay_by_horizon;
