from consecutive_ranks_at([])
