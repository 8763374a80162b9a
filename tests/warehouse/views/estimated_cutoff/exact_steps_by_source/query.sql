select
    model,
    source,
    estimated_cutoff,
    catalogue_cutoff,
    basis
from estimated_cutoff
where scope = 'source';
