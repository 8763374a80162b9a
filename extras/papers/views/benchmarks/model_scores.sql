-- Benchmark scores and properties of models, by class of models, for correlations.
-- Grain: one row per model, against_kind, against, model_kind, size_class.
-- Each model is in model_kind `all`, and in base or chat if the catalogue states it. It is in
--   size_class `all`, and in the class of its parameters if they are known.
-- Units: against_kind benchmark: the benchmark's own unit; ability: the unweighted mean over the
--   benchmarks that were loaded with this ability (Huang et al.). A mean leaves out a benchmark if
--   another of the ability has the scores of more than twice as many models, and a model that
--   lacks a remaining one. property: log_parameters is the natural
--   logarithm of the parameters, release_month is year * 12 + month.
-- Source: Zhu et al. 2024, arXiv 2405.08460, Tables 2 and 4; Huang et al. 2024, arXiv 2404.09937.
create or replace view internal.model_scores as
with of_abilities as (
    select
        model,
        benchmark,
        score,
        max(ability) over (partition by benchmark) as ability,
        count(*) over (partition by benchmark) as num_models
    from internal.benchmark_scores
),

common as (
    select *
    from of_abilities
    where ability is not null
    qualify 2 * num_models >= max(num_models) over (partition by ability)
),

num_benchmarks as (
    select
        ability,
        count(distinct benchmark) as num_benchmarks
    from common
    group by ability
),

scores as (
    select
        c.model,
        'ability' as against_kind,
        c.ability as against,
        avg(c.score) as score
    from common as c
    inner join num_benchmarks as n on c.ability = n.ability
    group by c.model, c.ability
    having count(*) = any_value(n.num_benchmarks)
    union all
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
