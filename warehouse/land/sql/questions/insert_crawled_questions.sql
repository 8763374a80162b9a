-- Land a month of questions. Input: questions_to_land (QUESTIONS, days for instants).
-- Parameter: month. A crowd's forecast counts only if every option has a probability. A question
-- landed from a later month stays: it was resolved again.
insert into forecast_questions by name
with matched as (
    select
        *,
        list_transform(
            options,
            lambda o: list_filter(crowd_forecast, lambda f: f.option = o)[1].probability
        ) as crowd
    from questions_to_land
)

select
    matched.source,
    matched.question_id,
    cast($month as date) as month,
    title,
    url,
    opened_at as opened,
    closed_at as closed,
    resolved_at as resolved,
    len(options) as num_options,
    answer_index,
    status,
    tags,
    case when len(list_filter(crowd, lambda p: p is null)) = 0 then crowd end
        as crowd_probabilities,
    licence
from matched
anti join forecast_questions as landed
    on matched.source = landed.source and matched.question_id = landed.question_id;
