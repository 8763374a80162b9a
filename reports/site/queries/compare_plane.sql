-- Level after the cutoff against the gap, over all sources.
select
    model,
    bits_per_byte_after,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    q_value,
    reason,
    num_months_before,
    num_months_after
from train_test_gap
where scope = 'all' and protocol = $protocol and bits_per_byte_gap is not null
order by bits_per_byte_after, model
