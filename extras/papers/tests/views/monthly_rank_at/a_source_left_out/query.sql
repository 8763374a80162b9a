from papers.monthly_rank_at(['wiki', 'not there'])
where protocol = 'default'
