select
    model,
    source,
    estimated_cutoff,
    reason
from estimated_cutoff_by_source;
