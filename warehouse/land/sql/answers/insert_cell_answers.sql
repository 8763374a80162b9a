-- Land a cell of answers. Input: answers_to_land (ANSWERS), questions_to_land.
-- Parameters: answer_cell, month. Skip questions of a later month: they were resolved again.
insert into forecast_answers by name
select
    a.model,
    a.revision,
    a.source,
    a.question_id,
    a.protocol,
    a.probabilities,
    a.probabilities[q.answer_index + 1] as p_correct,
    a.probabilities[a.chosen_index + 1] as p_chosen,
    a.chosen_index,
    a.is_parsed,
    case when q.answer_index is not null then coalesce(a.is_correct, false) end as is_correct,
    a.reason,
    a.place_probabilities,
    cast($answer_cell as varchar) as answer_cell
from answers_to_land as a
inner join questions_to_land as q on a.question_id = q.question_id
inner join forecast_questions as landed
    on
        a.source = landed.source
        and a.question_id = landed.question_id
        and landed.month = cast($month as date);
