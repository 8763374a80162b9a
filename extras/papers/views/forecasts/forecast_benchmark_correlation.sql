-- Correlations of models' accuracy on a group of questions with their benchmark scores, by quarter.
-- Grain: one row per source, protocol, question_group, period, benchmark.
-- Units and columns: as forecast_benchmark_correlation_at, with periods of three months.
-- Source: Zhu et al. 2024, section 4.4.
create or replace view papers.forecast_benchmark_correlation as
select *
from papers.forecast_benchmark_correlation_at(3);
