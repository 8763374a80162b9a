from internal.consecutive_ranks_at([])
