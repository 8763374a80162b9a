-- Correlation of accuracy with benchmark scores by group of questions and period, and its mean over
-- three periods.
select
    source,
    protocol,
    question_group,
    period as month,
    benchmark,
    num_models,
    spearman,
    spearman_low,
    spearman_high,
    spearman_smoothed
from papers.forecast_benchmark_correlation_at(3)
where spearman is not null
order by question_group, benchmark, source, protocol, month
