-- Models whose benchmark score is higher than their compression of fresh text predicts: models that
-- may be over-optimised for a benchmark, or have seen its questions.
-- Grain: one row per protocol, figure, model_kind, benchmark, model.
--   figure: bits_per_byte (mean over sources of text) or headline.
-- The test: a line through the other models predicts the score. residual = score - prediction,
--   standard_error is the prediction's, t_statistic = residual / standard_error (the externally
--   studentised residual) has num_models - 3 degrees of freedom. p_value is one-sided: high scores.
-- q_value: p_value after Benjamini-Hochberg's correction over the models of a protocol, figure,
--   model_kind and benchmark. is_outlier: q_value <= 0.05. So, with normal errors of one size, at
--   most 5 % of benchmarks without over-optimised models have an outlier.
-- Figures are NULL below 5 models (reason few_models), and if the other models have one figure or
--   lie on a line (no_spread). A score of which lower values are better is not supported.
-- Several over-optimised models widen the others' errors, and so can hide each other. An outlier
--   shows that a score is unusual, and not why.
-- Units: bits per byte; scores in the benchmark's own unit.
-- Source: Huang et al. 2024, arXiv 2404.09937, section 4; docs/metrics.md (Time).
create or replace view papers.benchmark_outliers as
with pairs as (
    select
        f.protocol,
        f.figure,
        s.model_kind,
        s.against as benchmark,
        f.model,
        f.value as bits_per_byte,
        s.score
    from internal.model_figures as f
    inner join internal.model_scores as s on f.model = s.model
    where
        f.scope = 'all'
        and f.category is null
        and f.figure in ('bits_per_byte', 'headline')
        and s.against_kind = 'benchmark'
        and s.size_class = 'all'
),

-- Sums of squares are of differences from the mean, because sums of large numbers lose digits.
centred as (
    select
        *,
        count(*) over family as num_models,
        bits_per_byte - avg(bits_per_byte) over family as x,
        score - avg(score) over family as y
    from pairs
    window family as (partition by protocol, figure, model_kind, benchmark)
),

summed as (
    select
        *,
        sum(x * x) over family as xx,
        sum(x * y) over family as xy,
        sum(y * y) over family as yy
    from centred
    window family as (partition by protocol, figure, model_kind, benchmark)
),

-- Of the line through all models: its residual, and the model's leverage. A model with leverage 1
-- determines the slope alone.
fitted as (
    select
        *,
        y - x * xy / nullif(xx, 0) as fit_residual,
        1e0 / num_models + x * x / nullif(xx, 0) as leverage,
        yy - xy * xy / nullif(xx, 0) as fit_squares
    from summed
),

-- Of the line through the other models, by the identities of deletion (Cook and Weisberg 1982).
deleted as (
    select
        *,
        fit_residual / (1 - leverage) as residual,
        (fit_squares - fit_residual * fit_residual / (1 - leverage)) / (num_models - 3) as variance
    from fitted
    where num_models >= 5 and xx > 0 and leverage < 1 - 1e-9
),

tested as (
    select
        d.protocol,
        d.figure,
        d.model_kind,
        d.benchmark,
        d.model,
        d.residual,
        sqrt(d.variance / (1 - d.leverage)) as standard_error,
        d.residual / sqrt(d.variance / (1 - d.leverage)) as t_statistic,
        t_p_value(d.residual / sqrt(d.variance / (1 - d.leverage)), d.num_models - 3) / 2 as half
    from deleted as d
    where d.variance > 1e-12 * d.yy
),

ranked as (
    select
        *,
        case when t_statistic > 0 then half else 1 - half end as p_value,
        count(*) over family as num_tests,
        row_number() over (
            partition by protocol, figure, model_kind, benchmark
            order by case when t_statistic > 0 then half else 1 - half end, model
        ) as place
    from tested
    window family as (partition by protocol, figure, model_kind, benchmark)
),

corrected as (
    select
        *,
        false_discovery_rate(
            p_value, num_tests, place, row(protocol, figure, model_kind, benchmark)
        ) as q_value
    from ranked
)

select
    c.protocol,
    c.figure,
    c.model_kind,
    c.benchmark,
    c.model,
    coalesce(r.q_value <= 0.05, false) as is_outlier,
    c.num_models,
    c.bits_per_byte,
    c.score,
    c.score - r.residual as predicted_score,
    r.residual,
    r.standard_error,
    r.t_statistic,
    r.p_value,
    r.q_value,
    case
        when c.num_models < 5 then 'few_models'
        when r.residual is null then 'no_spread'
    end as reason
from centred as c
left join corrected as r
    on
        c.protocol = r.protocol
        and c.figure = r.figure
        and c.model_kind = r.model_kind
        and c.benchmark = r.benchmark
        and c.model = r.model;
