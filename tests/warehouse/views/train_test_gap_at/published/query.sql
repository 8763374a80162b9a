from train_test_gap_at(date '2024-03-01')
where scope = 'source'
