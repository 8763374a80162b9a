-- Replicates are sums of 1/65536 nats: bounds are rounded.
select
    model,
    num_sources,
    bits_per_byte_gap,
    round(bits_per_byte_gap_low_documents, 6) as gap_low,
    round(bits_per_byte_gap_high_documents, 6) as gap_high
from train_test_gap_at(date '2024-03-01')
where scope = 'all';
