from papers.monthly_rank_at([])
