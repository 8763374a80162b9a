-- Landing of answers to forecasting questions.
-- In: answers_to_land and questions_to_land, a cell; or rows_to_land, texts of a file.
-- Out: forecast_answers has one row per model, source, question and protocol; the model has a name.

---------- Cells

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
