-- Correlations of models' figures with their benchmark scores, size and month of release.
-- Grain: one row per protocol, scope, source, category, figure, milestone, against_kind, against,
--   model_kind, size_class; only if at least one model has both values.
-- Units: correlations over models, -1 to 1; NULL below three models, or if one side is constant.
--   spearman is Pearson's correlation of ranks, with mean ranks for ties. A negative correlation of
--   bits_per_byte means that better compression goes with higher scores.
-- Source: Zhu et al. 2024, arXiv 2405.08460, Tables 2, 4, 5 and 6; docs/metrics.md (Time).
create or replace view papers.benchmark_correlation as
-- Group by numbers: ranking by ten names takes twice as long.
with figures as materialized (
    select
        *,
        dense_rank() over (order by protocol, scope, source, category, figure, milestone)
            as figure_id
    from internal.model_figures
),

scores as materialized (
    select
        *,
        dense_rank() over (order by against_kind, against, model_kind, size_class) as against_id
    from internal.model_scores
),

ranked as (
    select
        f.figure_id,
        s.against_id,
        f.value,
        s.score,
        rank() over (partition by f.figure_id, s.against_id order by f.value)
        + (count(*) over (partition by f.figure_id, s.against_id, f.value) - 1) / 2 as value_rank,
        rank() over (partition by f.figure_id, s.against_id order by s.score)
        + (count(*) over (partition by f.figure_id, s.against_id, s.score) - 1) / 2 as score_rank
    from figures as f
    inner join scores as s on f.model = s.model
),

correlations as (
    select
        figure_id,
        against_id,
        count(*) as num_models,
        count(*) >= 3 and min(value) < max(value) and min(score) < max(score) as is_defined,
        corr(value, score) as pearson,
        corr(value_rank, score_rank) as spearman
    from ranked
    group by figure_id, against_id
),

figure_names as (
    select distinct
        figure_id,
        protocol,
        scope,
        source,
        category,
        figure,
        milestone
    from figures
),

against_names as (
    select distinct
        against_id,
        against_kind,
        against,
        model_kind,
        size_class
    from scores
)

select
    f.protocol,
    f.scope,
    f.source,
    f.category,
    f.figure,
    f.milestone,
    a.against_kind,
    a.against,
    a.model_kind,
    a.size_class,
    c.num_models,
    case when c.is_defined and isfinite(c.pearson) then c.pearson end as pearson,
    case when c.is_defined and isfinite(c.spearman) then c.spearman end as spearman
from correlations as c
inner join figure_names as f on c.figure_id = f.figure_id
inner join against_names as a on c.against_id = a.against_id;
