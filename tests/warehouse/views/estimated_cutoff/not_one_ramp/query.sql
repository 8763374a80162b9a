select
    model,
    cutoff_text,
    estimated_cutoff,
    estimated_cutoff_low,
    estimated_cutoff_high,
    reason
from estimated_cutoff
where scope = 'all';
