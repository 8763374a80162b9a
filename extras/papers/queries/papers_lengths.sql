-- Correlation of losses with benchmark scores, by how much of a document was read.
-- milestone: first tokens of each document that count [tokens]
-- pearson_low: lower end of the 95 % interval of pearson [correlation]
-- pearson_high: upper end of the 95 % interval of pearson [correlation]
-- against: name of the benchmark
-- pearson: Pearson's correlation over models [correlation]
-- num_models: models with both values [models]
select
    milestone,
    against,
    pearson,
    correlation_end(pearson, num_models, -1.959963984540054e0) as pearson_low,
    correlation_end(pearson, num_models, 1.959963984540054e0) as pearson_high,
    num_models
from papers.benchmark_correlation
where
    figure = 'milestone_bits_per_byte' and scope = 'all' and protocol = $protocol
    and against_kind = 'benchmark' and model_kind = 'all' and size_class = 'all'
    and pearson is not null
order by against, milestone
