-- How hard each forecasting question was for the models that answered it without knowing the end.
-- Grain: one row per source, question_id; questions from after the cutoff of two or more models.
-- Units: expected_* is what a model of mean effect would have: a share, and a Brier score, 0 to 2.
--   Both may be outside of these limits. *_low and *_high: 95 % interval for other models
--   (Student's t, one variance for all questions). reason: why an interval or the Brier score is
--   NULL.
--   A model counts once for each protocol under which it answered.
-- Source: ForecastBench; docs/metrics.md (Forecasts); warehouse/estimates/questions.py.
create or replace view internal.question_difficulty as
with bounded as (
    select
        *,
        t_975(degrees_of_freedom) * difficulty_error as half,
        case
            when difficulty_error is null
                then
                    coalesce(
                        lacking_number(
                            num_answers, 'answer', ' to the question', 'answers to a question'
                        ),
                        'no interval: all models did as well as their effects say'
                    )
        end as lack
    from internal.question_effects
)

select
    a.source,
    a.question_id,
    q.opened,
    q.closed,
    a.difficulty as expected_accuracy,
    a.difficulty - a.half as expected_accuracy_low,
    a.difficulty + a.half as expected_accuracy_high,
    b.difficulty as expected_brier_score,
    b.difficulty - b.half as expected_brier_score_low,
    b.difficulty + b.half as expected_brier_score_high,
    a.num_answers,
    coalesce(b.num_answers, 0) as num_brier,
    case
        when b.difficulty is null then concat_ws('; ', a.lack, 'no answer gives probabilities')
        else coalesce(a.lack, 'Brier score: ' || b.lack)
    end as reason
from bounded as a
left join bounded as b
    on a.source = b.source and a.question_id = b.question_id and b.measure = 'brier_score'
left join main.forecast_questions as q
    on a.source = q.source and a.question_id = q.question_id
where a.measure = 'accuracy';
