select *
from train_test_gap_overall_at(date '2024-03-01');
