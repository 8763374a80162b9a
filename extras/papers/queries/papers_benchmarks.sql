-- Correlation of the board's level with benchmark scores; p is that of Pearson's.
-- p_value: of no correlation, by Fisher's transformation [probability]
-- pearson_low: lower end of the 95 % interval of pearson [correlation]
-- pearson_high: upper end of the 95 % interval of pearson [correlation]
select
    against,
    pearson,
    correlation_end(pearson, num_models, -1.959963984540054e0) as pearson_low,
    correlation_end(pearson, num_models, 1.959963984540054e0) as pearson_high,
    case
        when num_models > 3 and abs(pearson) < 1
            then
                t_p_value(
                    pearson * sqrt((num_models - 2) / (1 - pearson * pearson)), num_models - 2
                )
        when num_models > 3 then 0
    end as p_value,
    spearman,
    num_models
from papers.benchmark_correlation
where
    scope = 'all' and figure = 'headline'
    and against_kind = 'benchmark' and model_kind = 'all' and size_class = 'all'
    and pearson is not null
order by against
