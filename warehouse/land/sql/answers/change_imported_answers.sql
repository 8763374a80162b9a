-- The staged answers that differ from the landed ones. A NULL in a row keeps the landed value,
-- unless the row has another answer: then choice and probabilities are replaced together.
create or replace temp table changed_imported_answers as
with matched as (
    select
        *,
        coalesce(is_correct = landed_is_correct, false)
        and coalesce(probabilities = landed_probabilities, true)
        and coalesce(p_correct = landed_p_correct, true)
        and coalesce(chosen_index = landed_chosen_index, true)
        and coalesce((landed_chosen_index = answer_index) = landed_is_correct, true) as is_same
    from matched_imported_answers
),

wanted as (
    select
        * replace (
            coalesce(released, model_released) as released,
            coalesce(probabilities, case when is_same then landed_probabilities end)
                as probabilities,
            coalesce(p_correct, case when is_same then landed_p_correct end) as p_correct,
            coalesce(p_chosen, case when is_same then landed_p_chosen end) as p_chosen,
            coalesce(chosen_index, case when is_same then landed_chosen_index end) as chosen_index
        )
    from matched
)

select
    model,
    source,
    question_id,
    protocol,
    released,
    probabilities,
    p_correct,
    p_chosen,
    chosen_index,
    true as is_parsed,
    is_correct
from wanted
where
    not is_landed
    or released is distinct from landed_released
    or probabilities is distinct from landed_probabilities
    or p_correct is distinct from landed_p_correct
    or p_chosen is distinct from landed_p_chosen
    or chosen_index is distinct from landed_chosen_index
    or is_correct <> landed_is_correct
    or landed_reason is not null;
