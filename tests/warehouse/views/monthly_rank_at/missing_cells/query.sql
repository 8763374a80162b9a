from monthly_rank_at([])
