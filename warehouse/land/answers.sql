-- Landing of answers to forecasting questions.
-- In: answers_to_land and questions_to_land, a cell.
-- Out: forecast_answers has one row per model, source, question and protocol; the model has a name.

-- name: delete_cell_answers
-- Delete the answers that a cell replaces: answers of its month, and answers to questions that were
-- resolved again since. Input: answers_to_land. Parameters: model, source, protocol, month.
delete from forecast_answers
where
    model = $model
    and source = $source
    and protocol = $protocol
    and question_id in (
        select question_id
        from forecast_questions
        where
            source = $source
            and (
                month = cast($month as date)
                or (
                    month < cast($month as date)
                    and question_id in (select question_id from answers_to_land)
                )
            )
    );

-- name: mark_imported_answers
-- Mark imported answers that contradict a crawled month's questions, if the answers alone would not
-- show the contradiction: another number of options, or only a probability of the option that the
-- file called true. Input: questions_to_land. Parameters: source, month.
update forecast_answers
set reason = 'another_question'
from forecast_questions as landed
inner join questions_to_land as told on landed.question_id = told.question_id
where
    forecast_answers.source = landed.source
    and forecast_answers.question_id = landed.question_id
    and forecast_answers.protocol = 'given'
    and landed.source = $source
    and (landed.title is null or landed.month <= cast($month as date))
    and (
        landed.num_options <> len(told.options)
        or (
            landed.answer_index <> told.answer_index
            and forecast_answers.p_correct is not null
            and forecast_answers.probabilities is null
        )
    );

-- name: insert_cell_answers
-- Land a cell of answers. Input: answers_to_land (ANSWERS), questions_to_land.
-- Parameters: answer_cell, month. Skip questions of a later month: they were resolved again.
insert into forecast_answers by name
select
    a.* exclude (response)
    replace (
        case when q.answer_index is not null then coalesce(a.is_correct, false) end as is_correct
    ),
    a.probabilities[q.answer_index + 1] as p_correct,
    a.probabilities[a.chosen_index + 1] as p_chosen,
    cast($answer_cell as varchar) as answer_cell
from answers_to_land as a
inner join questions_to_land as q on a.question_id = q.question_id
inner join forecast_questions as landed
    on
        a.source = landed.source
        and a.question_id = landed.question_id
        and landed.month = cast($month as date);

-- name: find_unfitting_answers
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
