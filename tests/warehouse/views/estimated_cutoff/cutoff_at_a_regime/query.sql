select
    model,
    source,
    estimated_cutoff,
    reason
from estimated_cutoff
where scope = 'source';
