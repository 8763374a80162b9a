from papers.benchmark_fit
where
    figure = 'corpus_bits_per_char' and scope = 'source'
    and model_kind = 'all' and size_class = 'all'
