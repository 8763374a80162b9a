-- The staged answers joined with landed answers, their models' releases and landed questions. The
-- file's true option also applies to the probability of the landed answer.
create or replace temp table matched_imported_answers as
with releases as (
    select
        model,
        any_value(released) as released
    from forecast_answers
    where protocol = 'given'
    group by model
)

select
    given.*,
    answer.model is not null as is_landed,
    answer.released as landed_released,
    answer.probabilities as landed_probabilities,
    coalesce(answer.probabilities[given.answer_index + 1], answer.p_correct) as landed_p_correct,
    answer.p_chosen as landed_p_chosen,
    answer.chosen_index as landed_chosen_index,
    answer.is_correct as landed_is_correct,
    answer.reason as landed_reason,
    releases.released as model_released,
    question.title is not null as is_crawled_question,
    question.opened as landed_opened,
    question.closed as landed_closed,
    question.resolved as landed_resolved,
    question.num_options as landed_num_options,
    question.answer_index as landed_answer_index,
    question.tags as landed_tags
from imported_answers as given
left join forecast_answers as answer
    on
        given.model = answer.model
        and given.source = answer.source
        and given.question_id = answer.question_id
        and given.protocol = answer.protocol
left join releases on given.model = releases.model
left join forecast_questions as question
    on given.source = question.source and given.question_id = question.question_id;
