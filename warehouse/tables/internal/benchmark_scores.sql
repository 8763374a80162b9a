-- Scores of models on external benchmarks, for views of extra `papers`.
-- Grain: one row per model, benchmark.
-- Units: each benchmark's own unit; the scale of a benchmark does not change a correlation.
-- Source: `tidemark land benchmarks`.
create table if not exists internal.benchmark_scores (
    model varchar not null,
    benchmark varchar not null,
    score double not null,
    reference varchar,
    as_of date,
    ability varchar
);

-- For databases of before this column.
alter table internal.benchmark_scores add column if not exists ability varchar;
