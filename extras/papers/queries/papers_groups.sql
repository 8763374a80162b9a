-- Correlation of accuracy with benchmark scores by group of questions and period, and its mean over
-- three periods.
-- source: source of the questions
-- protocol: how the models were asked
-- question_group: group of questions
-- month: first day of the quarter in which questions were opened [date]
-- benchmark: name of the benchmark
-- num_models: models with both values [models]
-- spearman: Spearman's correlation over models [correlation]
-- spearman_low: lower end of the 95 % interval of spearman [correlation]
-- spearman_high: upper end of the 95 % interval of spearman [correlation]
-- spearman_smoothed: mean over the quarter and its two neighbours [correlation]
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
