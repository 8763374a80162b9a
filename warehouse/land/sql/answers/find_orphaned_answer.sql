-- The first landed answer that the file does not contain, and that the file's version of its
-- question (other options or another outcome) contradicts.
select
    landed.model,
    landed.source,
    landed.question_id,
    landed.is_correct,
    landed.chosen_index as chosen_option,
    landed.p_correct,
    question.num_options as landed_num_options,
    given.num_options,
    question.answer_index as landed_correct_option,
    given.answer_index as correct_option
from imported_answers as given
inner join forecast_questions as question
    on given.source = question.source and given.question_id = question.question_id
inner join forecast_answers as landed
    on given.source = landed.source and given.question_id = landed.question_id
anti join imported_answers as named
    on
        landed.model = named.model
        and landed.source = named.source
        and landed.question_id = named.question_id
        and landed.protocol = named.protocol
where
    question.title is null
    and (
        given.num_options <> question.num_options
        or (question.answer_index is not null and given.answer_index is null)
        or given.answer_index <> question.answer_index
        or (landed.chosen_index = given.answer_index) <> landed.is_correct
        or abs(landed.p_correct - landed.probabilities[given.answer_index + 1]) > 0.001
    )
order by given.row_number, landed.model
limit 1;
