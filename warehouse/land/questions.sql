-- Landing of crawled months of forecasting questions.
-- In: questions_to_land, schema QUESTIONS.
-- Out: forecast_questions has one row per source and question; a crawled question replaces others.

-- name: delete_crawled_questions
-- Delete the questions that a crawled month replaces: the same questions from imported files or
-- earlier months, and the month's former questions. Questions with remaining answers stay.
-- Input: questions_to_land. Parameters: source, month.
delete from forecast_questions
where
    source = $source
    and (
        (
            question_id in (select question_id from questions_to_land)
            and (title is null or month <= cast($month as date))
        )
        or (
            month = cast($month as date)
            and title is not null
            and question_id not in (
                select question_id
                from forecast_answers
                where source = $source
            )
        )
    );

-- name: insert_crawled_questions
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
