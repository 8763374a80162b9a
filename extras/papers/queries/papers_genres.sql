-- Correlation of losses with benchmark scores, by category of the text.
-- pearson_low: lower end of the 95 % interval of pearson [correlation]
-- pearson_high: upper end of the 95 % interval of pearson [correlation]
-- category: category of the sources
-- against: name of the benchmark
-- pearson: Pearson's correlation over models [correlation]
-- num_models: models with both values [models]
select
    category,
    against,
    pearson,
    correlation_end(pearson, num_models, -1.959963984540054e0) as pearson_low,
    correlation_end(pearson, num_models, 1.959963984540054e0) as pearson_high,
    num_models
from papers.benchmark_correlation
where
    figure = 'bits_per_byte' and scope = 'category' and protocol = $protocol
    and against_kind = 'benchmark' and model_kind = 'all' and size_class = 'all'
    and pearson is not null
order by against, category
