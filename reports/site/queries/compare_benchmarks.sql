-- Correlation of the level over all sources with benchmark scores.
select
    against,
    pearson,
    spearman,
    num_models
from benchmark_correlation
where
    protocol = $protocol and scope = 'all' and figure = 'bits_per_byte'
    and against_kind = 'benchmark' and model_kind = 'all' and size_class = 'all'
    and pearson is not null
order by against
