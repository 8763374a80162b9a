from papers.benchmark_correlation
where scope = 'category' and against <> 'log_parameters'
