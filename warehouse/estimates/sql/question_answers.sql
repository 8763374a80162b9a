-- Answers to questions from after the cutoffs, with their scores; right is 1 or 0.
-- brier_score: NULL while the probability of any outcome is unknown, as in forecast_calibration.
select
    a.model,
    a.protocol,
    a.source,
    a.question_id,
    coalesce(q.resolved, q.closed, q.opened) as day,
    a.days_before_close,
    cast(cast(a.is_correct as integer) as double) as accuracy,
    a.expected,
    case
        when
            count(*) filter (where a.p_correct is null and a.p_chosen is not null)
                over (partition by a.model, a.source, a.protocol)
            = 0
            then a.brier
    end as brier_score
from internal.judged_answers as a
inner join main.forecast_questions as q
    on a.source = q.source and a.question_id = q.question_id
where a.is_test
order by a.model, a.protocol, a.source, a.question_id;
