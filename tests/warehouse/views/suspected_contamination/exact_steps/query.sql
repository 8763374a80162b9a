select
    model,
    source,
    month,
    is_after_cutoff,
    bits_per_byte,
    round(predicted_bits_per_byte, 6) as predicted
from suspected_contamination
where is_suspected;
