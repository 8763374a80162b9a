-- Every column of forecast_adjusted. Units and NULLs: see that view.
-- Grain: one row per source, model, protocol, min_days_before_close; source NULL if scope is `all`.
create or replace view internal.forecast_adjusted_details as
with bounded as (
    select
        *,
        case measure when 'accuracy' then 1 else 2 end as limit_of_measure,
        score - t_975(degrees_of_freedom) * score_error as low,
        score + t_975(degrees_of_freedom) * score_error as high
    from internal.forecast_effects
),

limited as (
    select
        * replace (
            case when low < 0 then 0 when low > limit_of_measure then limit_of_measure else low end
                as low,
            case
                when high < 0 then 0 when high > limit_of_measure then limit_of_measure else high
            end as high
        )
    from bounded
),

-- A row of accuracy exists for each row of Brier's score: each answer is right or wrong.
paired as (
    select
        a.*,
        b.score as brier_score,
        b.low as brier_score_low,
        b.high as brier_score_high,
        b.guess as brier_guess,
        b.own_score as own_brier_score,
        b.num_answers as num_brier
    from limited as a
    left join limited as b
        on
            a.source is not distinct from b.source
            and a.model = b.model
            and a.protocol = b.protocol
            and a.min_days_before_close = b.min_days_before_close
            and b.measure = 'brier_score'
    where a.measure = 'accuracy'
)

select
    case when source is null then 'all' else 'source' end as scope,
    source,
    model,
    protocol,
    min_days_before_close,
    score as adjusted_accuracy,
    low as adjusted_accuracy_low,
    high as adjusted_accuracy_high,
    guess as expected_accuracy,
    brier_index(case when brier_score < 0 then 0 else brier_score end) as brier_index,
    brier_index(brier_score_high) as brier_index_low,
    brier_index(brier_score_low) as brier_index_high,
    brier_index(brier_guess) as expected_brier_index,
    num_answers,
    num_questions,
    reason,
    own_score as own_accuracy,
    brier_score as adjusted_brier_score,
    brier_score_low as adjusted_brier_score_low,
    brier_score_high as adjusted_brier_score_high,
    brier_guess as expected_brier_score,
    own_brier_score,
    coalesce(num_brier, 0) as num_brier,
    num_shared,
    num_days,
    num_models
from paired;
