-- The problem of each staged answer, NULL if it can be landed. find_problem reads the first.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        min(row_number) over (partition by model, source, question_id) as first_row_number,
        first_value(released) over (partition by model order by row_number) as first_released,
        first_value(opened) over (question order by row_number) as first_opened,
        first_value(closed) over (question order by row_number) as first_closed,
        first_value(num_options) over (question order by row_number) as first_options,
        num_options between 2 and 10000 and num_options = floor(num_options) as has_options,
        chosen_index between 0 and num_options - 1 and chosen_index = floor(chosen_index)
            as has_choice,
        answer_index between 0 and num_options - 1 and answer_index = floor(answer_index)
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
        (released is distinct from first_released) as has_another_release,
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
        when given_released is not null and released is null
            then [
                'release_date',
                given_released,
                day_wanted(given_released) || ', YYYY-MM, or nothing'
            ]
        when has_another_release
            then ['release_date', given_released, 'one release_date for each model']
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
            then ['num_options', given_options, 'a whole number of at least 2']
        when is_another_question
            then [
                'question_id',
                question_id,
                'the same opened, closed and num_options wherever a question comes'
            ]
        when is_correct is null
            then [
                'is_correct',
                given_correct,
                'true or false (1 or 0); leave out questions that have no outcome'
            ]
        when given_probabilities is not null and not coalesce(has_probabilities, false)
            then [
                'probabilities',
                given_probabilities,
                'one number an option, from 0 to 1, with the sum 1, such as [0.7, 0.3]'
            ]
        when given_chosen is not null and not coalesce(has_choice, false)
            then ['chosen_option', given_chosen, 'which option, counted from 0, or nothing']
        when given_answer is not null and not coalesce(has_answer, false)
            then ['correct_option', given_answer, 'which option, counted from 0, or nothing']
        when given_p_correct is not null and not coalesce(p_correct between 0 and 1, false)
            then ['p_correct', given_p_correct, 'a probability from 0 to 1, or nothing']
        when row_number > first_row_number
            then [
                'model, source, question_id',
                concat_ws(', ', model, source, question_id),
                'one row for each; row ' || first_row_number || ' is of the same'
            ]
    end as problem
from compared;
