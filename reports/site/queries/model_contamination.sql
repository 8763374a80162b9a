-- Months that a model predicts better than their neighbours and the other models explain, and the
-- three least likely months of each model otherwise.
select
    model,
    coalesce(source, 'all sources') as source,
    month,
    is_suspected,
    is_after_cutoff,
    bits_per_byte,
    predicted_bits_per_byte,
    p_value,
    q_value
from suspected_contamination
where protocol = $protocol and q_value is not null
qualify is_suspected or row_number() over (partition by model order by p_value, source, month) <= 3
order by model, p_value, source, month
