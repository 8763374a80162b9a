-- Landing of files of answers to forecasting questions, with the questions that they state.
-- In: rows_to_land, texts of a file.
-- Out: forecast_answers has one row per model, source, question and protocol; the model has a name.
--   forecast_questions has one row per source and question.

---------- Files: FreshBench's form

-- name: map_freshbench
-- Give FreshBench's answers the columns of imported answers, and join their questions.
-- Input: freshbench_answers, freshbench_questions (with place, its order in the file).
-- Parameter: by_text, whether options are those of the last question of the same text.
-- Later files of answers start a question with the day on which it was proposed.
create or replace temp table mapped as
with asked as (
    select
        question,
        started_time as opened,
        closed_time as closed,
        max_by(len(choices), place) as num_options,
        max_by(array_to_string(tags_list, '|'), place) as tags
    from freshbench_questions
    group by all
),

texts as (
    select
        question,
        max_by(len(choices), place) as num_options
    from freshbench_questions
    group by all
),

answered as (
    select
        row_number,
        model,
        "Release Date" as release_date,
        "Start Time" as opened,
        "End Time" as closed,
        acc as is_correct,
        "Right Possibility" as p_correct,
        regexp_replace(
            question, '^This Question is proposed on \d{4}-\d\d-\d\d\. ', ''
        ) as question
    from freshbench_answers
)

select
    a.row_number,
    a.model,
    a.release_date,
    a.question,
    concat_ws(' ', a.opened, a.closed, a.question) as question_id,
    a.opened,
    a.closed,
    cast(case when $by_text then t.num_options else q.num_options end as varchar) as num_options,
    a.is_correct,
    a.p_correct,
    q.tags,
    cast(null as varchar) as source,
    cast(null as varchar) as resolved,
    cast(null as varchar) as probabilities,
    cast(null as varchar) as chosen_option,
    cast(null as varchar) as correct_option
from answered as a
left join texts as t on a.question = t.question
left join asked as q
    on
        a.question = q.question
        and a.opened is not distinct from q.opened
        and a.closed is not distinct from q.closed;

-- name: find_freshbench_orphan
-- Find the first answer whose question is not in the file of questions, and count such answers.
select
    row_number,
    question,
    count(*) over () as num_rows
from mapped
where num_options is null
order by row_number
limit 1;

---------- Files: check

-- name: judge_imported_answers
-- The problem of each staged answer, NULL if it can be landed. find_problem reads the first.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        first_value(release_date) over (partition by model order by row_number) as first_released,
        first_value(opened) over (question order by row_number) as first_opened,
        first_value(closed) over (question order by row_number) as first_closed,
        first_value(num_options) over (question order by row_number) as first_options,
        num_options between 2 and 10000 and num_options = floor(num_options) as has_options,
        chosen_option between 0 and num_options - 1 and chosen_option = floor(chosen_option)
            as has_choice,
        correct_option between 0 and num_options - 1 and correct_option = floor(correct_option)
            as has_answer,
        len(probabilities) = num_options
        and len(list_filter(probabilities, lambda p: p between 0 and 1)) = num_options
        and abs(list_sum(probabilities) - 1) <= 0.001 as has_probabilities
    from staged_imported_answers
    window question as (partition by source, question_id)
),

compared as (
    select
        *,
        (release_date is distinct from first_released) as has_another_release,
        (closed is distinct from first_closed)
        or opened <> first_opened
        or num_options <> first_options as is_another_question
    from checked
)

select
    row_number,
    case
        when model is null then ['model', null, 'the name of a model']
        when question_id is null then ['question_id', null, 'what tells it from others']
        when given_release_date is not null and release_date is null
            then [
                'release_date',
                given_release_date,
                day_wanted(given_release_date) || ', YYYY-MM, or nothing'
            ]
        when has_another_release
            then ['release_date', given_release_date, 'one release_date for each model']
        when opened is null
            then [
                'opened',
                given_opened,
                'the day the question was opened, ' || day_wanted(given_opened)
            ]
        when given_closed is not null and closed is null
            then ['closed', given_closed, day_wanted(given_closed) || ', or nothing']
        when closed < opened
            then ['closed', given_closed, 'no day before the question was opened']
        when given_resolved is not null and resolved is null
            then ['resolved', given_resolved, day_wanted(given_resolved) || ', or nothing']
        when resolved < opened
            then ['resolved', given_resolved, 'no day before the question was opened']
        when not coalesce(has_options, false)
            then ['num_options', given_num_options, 'a whole number of at least 2']
        when is_another_question
            then [
                'question_id',
                question_id,
                'the same opened, closed and num_options wherever a question comes'
            ]
        when is_correct is null
            then [
                'is_correct',
                given_is_correct,
                'true or false (1 or 0); leave out questions that have no outcome'
            ]
        when given_probabilities is not null and not coalesce(has_probabilities, false)
            then [
                'probabilities',
                given_probabilities,
                'one number an option, from 0 to 1, with the sum 1, such as [0.7, 0.3]'
            ]
        when given_chosen_option is not null and not coalesce(has_choice, false)
            then ['chosen_option', given_chosen_option, 'which option, counted from 0, or nothing']
        when given_correct_option is not null and not coalesce(has_answer, false)
            then [
                'correct_option', given_correct_option, 'which option, counted from 0, or nothing'
            ]
        when given_p_correct is not null and not coalesce(p_correct between 0 and 1, false)
            then ['p_correct', given_p_correct, 'a probability from 0 to 1, or nothing']
    end as problem
from compared;

-- name: derive_imported_answers
-- Derive, from checked staged answers, the chosen option, the true option and the probabilities of
-- both. If no choice is named, the likeliest option is the chosen one. The true option comes from
-- any row of the question, else from the landed question unless the rows contradict the landed
-- outcome.
create or replace temp table imported_answers as
with chosen as (
    select
        * exclude (release_date, chosen_option, correct_option)
        replace (cast(num_options as integer) as num_options),
        'given' as protocol,
        release_date as released,
        cast(correct_option as integer) as answer_index,
        cast(
            coalesce(
                chosen_option,
                case
                    when len(list_filter(probabilities, lambda p: p = list_max(probabilities))) = 1
                        then list_position(probabilities, list_max(probabilities)) - 1
                end,
                case
                    when is_correct then correct_option
                    when num_options = 2 then 1 - correct_option
                end
            ) as integer
        ) as chosen_index
    from staged_imported_answers
),

known as (
    select
        chosen.* replace (
            case
                when chosen.answer_index is not null then chosen.answer_index
                when chosen.is_correct then chosen.chosen_index
                when chosen.num_options = 2 then 1 - chosen.chosen_index
            end as answer_index
        ),
        landed.answer_index as landed_answer_index,
        bool_or((chosen.chosen_index = landed.answer_index) <> chosen.is_correct) over question
            as contradicts_landed
    from chosen
    left join forecast_questions as landed
        on chosen.source = landed.source and chosen.question_id = landed.question_id
    window question as (partition by chosen.source, chosen.question_id)
),

settled as (
    select
        * exclude (landed_answer_index, contradicts_landed)
        replace (
            coalesce(
                answer_index,
                first_value(answer_index ignore nulls) over question,
                case when not coalesce(contradicts_landed, false) then landed_answer_index end
            ) as answer_index
        )
    from known
    window question as (
        partition by source, question_id order by row_number
        rows between unbounded preceding and unbounded following
    )
)

select
    * replace (
        coalesce(probabilities[answer_index + 1], p_correct) as p_correct,
        case when len(tags) > 0 then tags end as tags
    ),
    case
        when probabilities is not null
            then coalesce(probabilities[chosen_index + 1], list_max(probabilities))
        -- With several wrong options, the probability of the chosen one is unknown.
        when num_options = 2 then case when is_correct then p_correct else 1 - p_correct end
    end as p_chosen,
    cast(date_trunc('month', coalesce(resolved, closed, opened)) as date) as month
from settled;

-- name: match_imported_answers
-- The staged answers with what has landed of them, of their models' releases and of their questions
-- (column landed_<name>). The file's true option also applies to the probability of the landed
-- answer. If the true option is not known, the options are told that cannot both be true.
create or replace temp table matched_imported_answers as
with releases as (
    select
        model,
        any_value(released) as released
    from forecast_answers
    where protocol = 'given'
    group by model
)

select
    given.*,
    given.released as release_date,
    releases.released as landed_release_date,
    given.chosen_index as chosen_option,
    answer.chosen_index as landed_chosen_option,
    answer.is_correct as landed_is_correct,
    answer.probabilities as landed_probabilities,
    coalesce(answer.probabilities[given.answer_index + 1], answer.p_correct) as landed_p_correct,
    answer.p_correct as stored_p_correct,
    answer.p_chosen as landed_p_chosen,
    question.opened as landed_opened,
    question.closed as landed_closed,
    question.num_options as landed_num_options,
    -- A crawled question never changes: see find_crawled_question.
    case when question.title is null then question.resolved end as landed_resolved,
    case when question.title is null then question.tags end as landed_tags,
    case
        when
            given.answer_index is null
            and (given.chosen_index = question.answer_index) <> given.is_correct
            then if(given.is_correct, '', 'not ') || given.chosen_index
        else cast(given.answer_index as varchar)
    end as correct_option,
    case
        when (answer.chosen_index = given.answer_index) <> answer.is_correct
            then if(answer.is_correct, '', 'not ') || answer.chosen_index
        else cast(question.answer_index as varchar)
    end as landed_correct_option
from imported_answers as given
left join forecast_answers as answer
    on
        given.model = answer.model
        and given.source = answer.source
        and given.question_id = answer.question_id
        and given.protocol = answer.protocol
left join releases on given.model = releases.model
left join forecast_questions as question
    on given.source = question.source and given.question_id = question.question_id;

-- name: find_orphaned_answer
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

---------- Files: find what changes

-- name: complete_imported_answers
-- The staged answers, as they are to land. A NULL in a row keeps the landed value, unless the row
-- has another answer: then choice and probabilities are replaced together.
create or replace temp table completed_answers as
with compared as (
    select
        *,
        coalesce(is_correct = landed_is_correct, false)
        and coalesce(probabilities = landed_probabilities, true)
        and coalesce(p_correct = landed_p_correct, true)
        and coalesce(chosen_index = landed_chosen_option, true)
        and coalesce((landed_chosen_option = answer_index) = landed_is_correct, true) as is_same
    from matched_imported_answers
)

select
    model,
    source,
    question_id,
    protocol,
    coalesce(released, landed_release_date) as released,
    coalesce(probabilities, case when is_same then landed_probabilities end) as probabilities,
    case
        -- An outcome that came later leaves the landed row as it is: views derive the probability.
        when p_correct = landed_p_correct or (p_correct is null and is_same) then stored_p_correct
        else p_correct
    end as p_correct,
    coalesce(p_chosen, case when is_same then landed_p_chosen end) as p_chosen,
    coalesce(chosen_index, case when is_same then landed_chosen_option end) as chosen_index,
    true as is_parsed,
    is_correct,
    cast(null as varchar) as reason
from compared;

-- name: update_imported_releases
-- Copy the release in a model's staged answers to all its imported answers.
update forecast_answers
set released = given.released
from (
    select distinct
        model,
        released
    from imported_answers
    where released is not null
) as given
where
    forecast_answers.model = given.model
    and forecast_answers.protocol = 'given'
    and forecast_answers.released is distinct from given.released;

---------- Questions of the answers

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
