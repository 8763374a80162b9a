-- Correlations of models' accuracy on a group of questions with their benchmark scores, by period.
-- Grain: one row per source, protocol, question_group, period, benchmark.
-- Parameter: num_months, the length of a period; periods are counted from 2015-01-01.
-- Units: correlations over models, -1 to 1. A model's accuracy is over questions opened in the
--   period. reason: NULL below three models, or if one side is constant. spearman: Pearson's of
--   ranks, with mean ranks for ties. *_low and *_high: 95 % interval (Fisher's transformation; for
--   ranks, with the factor of Fieller, Hartley and Pearson 1957); NULL below four models.
--   spearman_smoothed: mean over the period, the one before and the one after, for pictures.
--   question_group `all`: all questions.
-- Source: Zhu et al. 2024, section 4.4 and appendix H.
create or replace macro papers.forecast_benchmark_correlation_at(num_months) as table
    with answers as (
        select
            model,
            source,
            protocol,
            question_group,
            opened,
            is_correct
        from internal.grouped_answers
        union all
        select
            model,
            source,
            protocol,
            'all' as question_group,
            opened,
            is_correct
        from internal.judged_answers
    ),

    accuracies as (
        select
            model,
            source,
            protocol,
            question_group,
            period_of(opened, num_months) as period,
            avg(cast(is_correct as integer)) as accuracy,
            count(*) as num_questions
        from answers
        group by model, source, protocol, question_group, period
    ),

    ranked as (
        select
            a.* exclude (model),
            s.benchmark,
            s.score,
            rank() over (cohort order by a.accuracy)
            + (count(*) over (cohort_by_accuracy) - 1) / 2 as accuracy_rank,
            rank() over (cohort order by s.score)
            + (count(*) over (cohort_by_score) - 1) / 2 as score_rank
        from accuracies as a
        inner join internal.benchmark_scores as s on a.model = s.model
        window
            cohort as (
                partition by a.source, a.protocol, a.question_group, a.period, s.benchmark
            ),
            cohort_by_accuracy as (
                partition by
                    a.source, a.protocol, a.question_group, a.period, s.benchmark, a.accuracy
            ),
            cohort_by_score as (
                partition by a.source, a.protocol, a.question_group, a.period, s.benchmark, s.score
            )
    ),

    correlated as (
        select
            source,
            protocol,
            question_group,
            period,
            benchmark,
            count(*) as num_models,
            max(num_questions) as num_questions,
            count(*) >= minimum('models of a line')
            and min(accuracy) < max(accuracy)
            and min(score) < max(score) as is_defined,
            case when is_defined then corr(accuracy, score) end as pearson,
            case when is_defined then corr(accuracy_rank, score_rank) end as spearman
        from ranked
        group by source, protocol, question_group, period, benchmark
    )

    select
        * exclude (is_defined),
        correlation_end(pearson, num_models, -1.959963984540054e0) as pearson_low,
        correlation_end(pearson, num_models, 1.959963984540054e0) as pearson_high,
        correlation_end(spearman, num_models, -2.0179e0) as spearman_low,
        correlation_end(spearman, num_models, 2.0179e0) as spearman_high,
        case when spearman is not null then avg(spearman) over neighbours end as spearman_smoothed,
        line_reason(num_models, is_defined, 'correlations') as reason
    from correlated
    window neighbours as (
        partition by source, protocol, question_group, benchmark
        order by period rows between 1 preceding and 1 following
    );
