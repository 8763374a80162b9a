-- Imported answers that contradict crawled questions, if there are any: number of answers, models,
-- number of questions, and an example question. Parameter: source.
select
    count(*) as num_answers,
    list(distinct answer.model order by answer.model) as models,
    count(distinct answer.question_id) as num_questions,
    min(answer.question_id) as question_id
from forecast_answers as answer
inner join forecast_questions as question
    on answer.source = question.source and answer.question_id = question.question_id
where
    answer.source = $source
    and answer.protocol = 'given'
    and question.title is not null
    and (
        question.status <> 'resolved'
        or not answer_fits(
            answer.chosen_index,
            answer.is_correct,
            answer.probabilities,
            answer.reason,
            question.num_options,
            question.answer_index
        )
    )
having count(*) > 0;
