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
