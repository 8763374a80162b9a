-- The straight line of benchmark scores on each figure of compression, with intervals.
-- Grain: one row per protocol, figure, scope, scope_name, against, model_kind, size_class; only
--   figures that do not depend on a length of text, against benchmarks and abilities.
-- Parameter: split_on, the first day of the months of figure bits_per_byte_after, for all models
--   (Li et al.: 2023-01-01); NULL: the months after each model's own cutoff.
-- Units: score = intercept + slope * figure, by least squares over models; rmse is the root of the
--   mean squared residual, in the score's unit. Intervals of 95 %: Fisher's for pearson (four
--   models), Student's t for slope. reason: figures are NULL below three models, or if one side is
--   constant. The models are taken as drawn from such models: a family counts as independent.
-- Source: Huang et al. 2024, arXiv 2404.09937; Li et al. 2024, arXiv 2402.00861, Table 4;
--   docs/metrics.md (Time).
create or replace macro papers.benchmark_fit_at(split_on) as table
    with figures as (
        select
            model,
            protocol,
            scope,
            coalesce(source, category) as scope_name,
            figure,
            value
        from internal.model_figures
        where milestone is null
        union all
        select
            model,
            protocol,
            'source' as scope,
            source as scope_name,
            'bits_per_byte_after' as figure,
            avg(bits_per_byte) filter (where is_after) as value
        from internal.split_cells_at(split_on)
        group by model, protocol, source
    ),

    sums as (
        select
            f.protocol,
            f.figure,
            f.scope,
            f.scope_name,
            case s.against_kind when 'ability' then 'ability:' else '' end || s.against as against,
            s.model_kind,
            s.size_class,
            count(*) as num_models,
            count(*) >= minimum('models of a line')
            and min(f.value) < max(f.value)
            and min(s.score) < max(s.score) as is_defined,
            corr(f.value, s.score) as pearson,
            regr_slope(s.score, f.value) as slope,
            regr_intercept(s.score, f.value) as intercept,
            regr_sxx(s.score, f.value) as squares,
            -- Rounding of a correlation of 1 is no residual.
            case
                when abs(pearson) < 1 - 1e-12
                    then regr_syy(s.score, f.value) * (1 - power(pearson, 2))
                else 0
            end as residuals
        from figures as f
        inner join internal.model_scores as s on f.model = s.model
        where f.value is not null and s.against_kind <> 'property'
        group by
            f.protocol,
            f.figure,
            f.scope,
            f.scope_name,
            s.against_kind,
            s.against,
            s.model_kind,
            s.size_class
    ),

    fits as (
        select
            *,
            t_975(num_models - 2) * sqrt(residuals / ((num_models - 2) * squares)) as half
        from sums
        where is_defined
    )

    select
        s.protocol,
        s.figure,
        s.scope,
        s.scope_name,
        s.against,
        s.model_kind,
        s.size_class,
        s.num_models,
        f.pearson,
        correlation_end(f.pearson, f.num_models, -1.959963984540054e0) as pearson_low,
        correlation_end(f.pearson, f.num_models, 1.959963984540054e0) as pearson_high,
        f.slope,
        f.slope - f.half as slope_low,
        f.slope + f.half as slope_high,
        f.intercept,
        sqrt(f.residuals / f.num_models) as rmse,
        line_reason(s.num_models, s.is_defined, 'pearson') as reason
    from sums as s
    left join fits as f
        on
            s.protocol = f.protocol
            and s.figure = f.figure
            and s.scope = f.scope
            and s.scope_name is not distinct from f.scope_name
            and s.against = f.against
            and s.model_kind = f.model_kind
            and s.size_class = f.size_class;
