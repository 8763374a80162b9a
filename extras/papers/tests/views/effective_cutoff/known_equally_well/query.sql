-- The first three months differ by chance alone; two pages tell nothing.
select
    model,
    effective_cutoff_low,
    effective_cutoff_high,
    effective_cutoff is null as is_null
from internal.effective_cutoff;
