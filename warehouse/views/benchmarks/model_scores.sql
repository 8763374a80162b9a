-- Benchmark scores and properties of models, by class of models, for correlations.
-- Grain: one row per model, against_kind, against, model_kind, size_class.
-- Each model is in model_kind `all`, and in base or chat if the catalogue states it. It is in
--   size_class `all`, and in the class of its parameters if they are known.
-- Units: against_kind benchmark: the benchmark's own unit; property: log_parameters is the natural
--   logarithm of the parameters, release_month is year * 12 + month.
-- Source: Zhu et al. 2024, arXiv 2405.08460, Tables 2 and 4.
create or replace view internal.model_scores as
with scores as (
    select
        model,
        'benchmark' as against_kind,
        benchmark as against,
        score
    from internal.benchmark_scores
    union all
    select
        model,
        'property' as against_kind,
        'log_parameters' as against,
        ln(parameters) as score
    from main.models
    where parameters > 0
    union all
    select
        model,
        'property' as against_kind,
        'release_month' as against,
        year(released) * 12 + month(released) as score
    from main.models
    where released is not null
),

kinds as (
    select
        model,
        unnest(['all', case when is_chat then 'chat' when not is_chat then 'base' end])
            as model_kind,
        size_class(parameters) as class_of_size
    from main.models
),

classes as (
    select
        model,
        model_kind,
        unnest(['all', class_of_size]) as size_class
    from kinds
    where model_kind is not null
)

select
    scores.model,
    scores.against_kind,
    scores.against,
    coalesce(classes.model_kind, 'all') as model_kind,
    coalesce(classes.size_class, 'all') as size_class,
    scores.score
from scores
left join classes on scores.model = classes.model
where classes.model is null or classes.size_class is not null;
