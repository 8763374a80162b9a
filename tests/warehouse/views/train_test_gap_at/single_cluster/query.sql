-- A side with a month of a single document has no interval, and so no gap has one.
-- Replicates are sums of 1/65536 nats: bounds are rounded.
select
    source,
    bits_per_byte_before,
    bits_per_byte_gap,
    round(bits_per_byte_before_low_documents, 6) as before_low,
    round(bits_per_byte_before_high_documents, 6) as before_high,
    round(bits_per_byte_after_low_documents, 6) as after_low,
    round(bits_per_byte_after_high_documents, 6) as after_high,
    round(bits_per_byte_gap_low_documents, 6) as gap_low,
    round(bits_per_byte_gap_high_documents, 6) as gap_high
from train_test_gap_at(date '2024-03-01')
where scope = 'source';
