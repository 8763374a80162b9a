from train_test_gap_at(null)
