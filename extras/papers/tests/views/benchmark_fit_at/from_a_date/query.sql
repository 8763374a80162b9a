from papers.benchmark_fit_at(date '2024-02-01')
where
    figure = 'bits_per_byte_after' and model_kind = 'all' and size_class = 'all'
