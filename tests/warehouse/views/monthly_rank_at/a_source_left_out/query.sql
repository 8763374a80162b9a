from monthly_rank_at(['wiki', 'not there'])
where protocol = 'default'
