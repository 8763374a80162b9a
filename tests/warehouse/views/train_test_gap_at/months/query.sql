-- Documents that are all alike: the interval over time is that of months. b has too few of them.
select
    model,
    bits_per_byte_gap,
    round(bits_per_byte_gap_low, 5) as gap_low,
    round(expected_next_high, 5) as next_high,
    round(p_value, 3) as p,
    round(q_value, 3) as q,
    round(bits_per_byte_gap_low_documents, 5) as low_documents,
    round(expected_next_high_documents, 5) as next_high_documents
from train_test_gap_at(date '2024-07-01')
where model <> 'c' and scope = 'source';
