select
    benchmark,
    model,
    is_outlier,
    num_models,
    bits_per_byte,
    score,
    predicted_score,
    residual,
    standard_error,
    t_statistic,
    round(p_value, 4) as p_value,
    round(q_value, 4) as q_value,
    reason
from papers.benchmark_outliers
where figure = 'bits_per_byte' and model_kind = 'all'
order by benchmark, model;
