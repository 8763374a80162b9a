select *
from estimated_cutoff
where not is_compressor(model)
