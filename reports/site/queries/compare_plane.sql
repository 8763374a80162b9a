-- Level after the cutoff against the gap, over all sources.
select
    model,
    bits_per_byte_after,
    bits_per_byte_gap,
    bits_per_byte_gap_low,
    bits_per_byte_gap_high,
    expected_next,
    rank,
    rank_in_band,
    size_band
from generalization_robustness
where protocol = $protocol and source is null and bits_per_byte_after is not null
order by expected_next nulls last, model
