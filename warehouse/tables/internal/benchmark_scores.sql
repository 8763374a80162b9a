-- Scores of models on outside benchmarks, for view benchmark_correlation.
-- Grain: one row per model, benchmark.
-- Units: each benchmark's own; a correlation does not change with a benchmark's scale.
-- Source: `tidemark load-benchmarks`.
create table if not exists internal.benchmark_scores (
    model varchar not null,
    benchmark varchar not null,
    score double not null,
    reference varchar, -- where it was published
    as_of date -- when it was
);
