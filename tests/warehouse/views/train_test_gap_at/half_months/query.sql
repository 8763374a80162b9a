from train_test_gap_at(null)
where scope = 'source'
