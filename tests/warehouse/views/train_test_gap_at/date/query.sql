select *
from train_test_gap_at(date '2024-02-01')
where scope = 'source';
