-- Answers to questions with an outcome, and to tasks, with the columns needed to judge them.
-- Grain: one row per model, source, protocol, question_id.
-- Units: expected is the probability of a right guess, 1 / num_options. p_correct is the
--   probability of the outcome, from any file or crawl; NULL if unknown. brier is the sum over
--   options of (probability - outcome)^2, 0 to 2; NULL if it does not follow from the known
--   probabilities. is_test: opened after the cutoff month, or from the release on if the cutoff is
--   unknown. days_before_close: from that day on, to the day of closing, or of the outcome if that
--   came first; negative before it. With documents (source `…:documents`), which are from before
--   the opening, it begins with the later of that day and the opening.
--   Answers that contradict their question are left out (see answer_fits).
--   is_task: a task made from a text of the month.
-- Source: docs/metrics.md (Forecasts).
create or replace view internal.judged_answers_details as
with dated as (
    select
        a.* replace (
            coalesce(
                a.probabilities[q.answer_index + 1],
                a.p_correct,
                -- A right answer chose the outcome; equal probabilities hold for any outcome.
                case
                    when a.is_correct or list_min(a.probabilities) = list_max(a.probabilities)
                        then a.p_chosen
                end
            ) as p_correct
        ),
        q.opened,
        q.closed,
        case when q.resolved < q.closed then q.resolved else q.closed end as ended,
        q.num_options,
        q.tags,
        q.crowd_probabilities,
        q.answer_index,
        m.cutoff,
        coalesce(a.released, m.released) as released_at,
        coalesce(cast(m.cutoff + interval 1 month as date), released_at) as unknown_from
    from main.forecast_answers as a
    inner join main.forecast_questions as q
        on a.source = q.source and a.question_id = q.question_id
    left join main.models as m on a.model = m.model
    where
        a.is_correct is not null
        and q.status = 'resolved'
        and answer_fits(
            a.chosen_index, a.is_correct, a.probabilities, a.reason, q.num_options, q.answer_index
        )
)

select
    model,
    source,
    protocol,
    question_id,
    opened,
    closed,
    released_at as released,
    cutoff,
    opened < released_at as is_before_release,
    opened >= unknown_from as is_test,
    date_diff(
        'day',
        case
            when source like '%:documents' and opened > unknown_from then opened
            else unknown_from
        end,
        ended
    ) as days_before_close,
    num_options,
    1 / num_options as expected,
    is_parsed,
    is_correct,
    p_correct,
    p_chosen,
    case
        when probabilities is not null
            then list_sum(list_transform(probabilities, lambda p: p * p)) - 2 * p_correct + 1
        when num_options = 2 then 2 * (1 - p_correct) * (1 - p_correct)
    end as brier,
    list_sum(list_transform(crowd_probabilities, lambda p: p * p))
    - 2 * crowd_probabilities[answer_index + 1] + 1 as crowd_brier,
    tags,
    contains(source, ':task-') as is_task
from dated;
