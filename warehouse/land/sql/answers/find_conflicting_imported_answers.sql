-- The first staged answer that contradicts the landed answer or the landed question.
with compared as (
    select
        *,
        (chosen_index = landed_answer_index) <> is_correct as contradicts_outcome,
        (landed_chosen_index = answer_index) <> landed_is_correct as contradicts_choice
    from matched_imported_answers
)

select
    model,
    source,
    question_id,
    is_correct,
    landed_is_correct,
    released as release_date,
    model_released as landed_release_date,
    p_correct,
    landed_p_correct,
    probabilities,
    landed_probabilities,
    chosen_index as chosen_option,
    landed_chosen_index as landed_chosen_option,
    case
        when answer_index is null and contradicts_outcome
            then case when is_correct then '' else 'not ' end || chosen_index
        else cast(answer_index as varchar)
    end as correct_option,
    case
        when contradicts_choice
            then case when landed_is_correct then '' else 'not ' end || landed_chosen_index
        else cast(landed_answer_index as varchar)
    end as landed_correct_option,
    opened,
    landed_opened,
    closed,
    landed_closed,
    resolved,
    case when not is_crawled_question then landed_resolved end as landed_resolved,
    num_options,
    landed_num_options,
    tags,
    case when not is_crawled_question then landed_tags end as landed_tags
from compared
where
    is_correct <> landed_is_correct
    or released <> model_released
    or p_correct <> landed_p_correct
    or chosen_index <> landed_chosen_index
    or probabilities <> landed_probabilities
    or opened <> landed_opened
    or closed <> landed_closed
    or num_options <> landed_num_options
    or answer_index <> landed_answer_index
    or contradicts_outcome
    or contradicts_choice
    or (not is_crawled_question and (resolved <> landed_resolved or tags <> landed_tags))
order by row_number
limit 1;
