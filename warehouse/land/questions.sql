-- Landing of forecasting questions: crawled months, and questions that imported answers state.
-- In: questions_to_land, schema QUESTIONS; imported_answers, staged by answers.sql.
-- Out: forecast_questions has one row per source and question; a crawled question replaces others.

---------- Crawled months

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

---------- Imported answers

-- name: judge_outcomes
-- The problem of each staged answer that contradicts itself, or an earlier row with the same
-- question; else NULL. find_problem reads the first.
create or replace temp table judged_rows as
with compared as (
    select
        *,
        try_cast(given_p_correct as double) as said_p_correct,
        first_value(answer_index ignore nulls) over (question order by row_number) as first_answer,
        first_value(resolved ignore nulls) over (question order by row_number) as first_resolved,
        first_value(tags ignore nulls) over (question order by row_number) as first_tags
    from imported_answers
    window question as (partition by source, question_id)
)

select
    row_number,
    case
        when answer_index <> first_answer or resolved <> first_resolved or tags <> first_tags
            then [
                'question_id',
                question_id,
                'the same outcome, resolved and tags wherever a question comes'
            ]
        when (chosen_index = answer_index) <> is_correct
            then [
                'is_correct',
                given_is_correct,
                'what follows from the chosen option, ' || chosen_index
                || if(
                    given_chosen_option is null, ' (the likeliest; chosen_option may differ)', ''
                )
                || ', and the one that came true, ' || answer_index
            ]
        when abs(said_p_correct - probabilities[answer_index + 1]) > 0.001
            then [
                'p_correct',
                given_p_correct,
                'what probabilities say of option ' || answer_index || ', which came true: '
                || probabilities[answer_index + 1]
            ]
        when list_min(list_transform(probabilities, lambda p: abs(p - said_p_correct))) > 0.001
            then [
                'p_correct',
                given_p_correct,
                'one of the probabilities, ' || cast(probabilities as varchar)
            ]
    end as problem
from compared;

-- name: find_crawled_question
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

-- name: complete_imported_questions
-- The questions of staged answers, as they are to land. A NULL in the file keeps the landed value
-- (the outcome only if no row contradicts it, see derive_imported_answers). Crawled questions never
-- change.
create or replace temp table completed_questions as
with given as (
    select
        source,
        question_id,
        any_value(opened) as opened,
        any_value(closed) as closed,
        any_value(resolved) as resolved,
        any_value(num_options) as num_options,
        any_value(answer_index) as answer_index,
        any_value(tags) as tags
    from imported_answers
    group by source, question_id
),

wanted as (
    select
        given.source,
        given.question_id,
        given.opened,
        coalesce(given.closed, landed.closed) as closed,
        coalesce(given.resolved, landed.resolved) as resolved,
        given.num_options,
        given.answer_index,
        'resolved' as status,
        coalesce(given.tags, landed.tags) as tags
    from given
    left join forecast_questions as landed
        on given.source = landed.source and given.question_id = landed.question_id
    where landed.title is null
)

select
    *,
    cast(date_trunc('month', coalesce(resolved, closed, opened)) as date) as month
from wanted;
