from train_test_gap
where scope = 'all'
