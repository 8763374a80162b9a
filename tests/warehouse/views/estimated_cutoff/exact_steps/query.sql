select
    model,
    estimated_cutoff,
    estimated_cutoff_low,
    estimated_cutoff_high,
    cutoff_onset,
    round(q_value, 6) as q,
    is_at_edge,
    basis,
    reason
from estimated_cutoff
where scope = 'all';
