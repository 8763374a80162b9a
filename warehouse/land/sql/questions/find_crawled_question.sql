-- The first staged answer that contradicts a crawled question.
select
    given.row_number,
    'question_id' as column_name,
    given.question_id as given,
    'what is known of this question of ' || given.source || ': opened on ' || question.opened
    || coalesce(', closed on ' || question.closed, '') || ', ' || question.num_options
    || ' options, ' || question.status
    || coalesce(', option ' || question.answer_index || ' came true', '') as expected
from imported_answers as given
inner join forecast_questions as question
    on given.source = question.source and given.question_id = question.question_id
where
    question.title is not null
    and (
        question.status <> 'resolved'
        or given.opened <> question.opened
        or given.closed <> question.closed
        or given.num_options <> question.num_options
        or given.answer_index <> question.answer_index
        or (given.chosen_index = question.answer_index) <> given.is_correct
    )
order by given.row_number
limit 1;
