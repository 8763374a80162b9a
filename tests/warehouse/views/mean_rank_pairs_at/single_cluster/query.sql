from mean_rank_pairs_at([])
