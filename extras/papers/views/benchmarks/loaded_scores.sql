-- The scores of models on external benchmarks, as loaded.
-- Grain: one row per model, benchmark.
-- Units: each benchmark's own unit. ability: the group of benchmarks, NULL if none was given.
-- Source: `tidemark land benchmarks`.
create or replace view papers.loaded_scores as
select
    model,
    benchmark,
    ability,
    score,
    reference,
    as_of
from internal.benchmark_scores;
