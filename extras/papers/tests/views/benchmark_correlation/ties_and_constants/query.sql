from papers.benchmark_correlation
where scope = 'source' and model_kind = 'all' and size_class = 'all'
