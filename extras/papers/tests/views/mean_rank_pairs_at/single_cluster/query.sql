from internal.mean_rank_pairs_at([])
