-- The first staged answer that disagrees with what is landed of it or of its question.
with releases as (
    select
        model,
        any_value(released) as released
    from forecast_answers
    where protocol = 'given'
    group by model
)

select
    given.model,
    given.source,
    given.question_id,
    given.is_correct,
    answer.is_correct as landed_is_correct,
    given.released as release_date,
    releases.released as landed_release_date,
    given.p_correct,
    answer.p_correct as landed_p_correct,
    given.chosen_index as chosen_option,
    answer.chosen_index as landed_chosen_option,
    given.opened,
    question.opened as landed_opened,
    given.closed,
    question.closed as landed_closed,
    given.num_options,
    question.num_options as landed_num_options
from foreign_answers as given
left join forecast_answers as answer
    on
        given.model = answer.model
        and given.source = answer.source
        and given.question_id = answer.question_id
        and given.protocol = answer.protocol
left join releases on given.model = releases.model
left join forecast_questions as question
    on given.source = question.source and given.question_id = question.question_id
where
    given.is_correct <> answer.is_correct
    or given.released <> releases.released
    or given.p_correct <> answer.p_correct
    or given.chosen_index <> answer.chosen_index
    or given.probabilities <> answer.probabilities
    or given.opened <> question.opened
    or given.closed <> question.closed
    or given.num_options <> question.num_options
    or given.answer_index <> question.answer_index
order by given.row_number
limit 1;
