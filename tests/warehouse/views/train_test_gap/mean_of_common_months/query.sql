from train_test_gap_at(cast(null as date))
where scope = 'all'
