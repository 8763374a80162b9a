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
                given_correct,
                'what follows from the chosen option, ' || chosen_index
                || case
                    when given_chosen is null then ' (the likeliest; chosen_option may differ)'
                    else ''
                end
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
