-- The staged answers that are not landed just so. What a row leaves open stays as it was, unless
-- what it says is another answer: choice and probabilities belong together.
create or replace temp table changed_foreign_answers as
with releases as (
    select
        model,
        any_value(released) as released
    from forecast_answers
    where protocol = 'given'
    group by model
),

matched as (
    select
        given.*,
        coalesce(given.released, releases.released) as known_released,
        landed.probabilities as landed_probabilities,
        landed.p_correct as landed_p_correct,
        landed.p_chosen as landed_p_chosen,
        landed.chosen_index as landed_chosen_index,
        coalesce(given.is_correct = landed.is_correct, false)
        and coalesce(given.probabilities = landed.probabilities, true)
        and coalesce(given.p_correct = landed.p_correct, true)
        and coalesce(given.chosen_index = landed.chosen_index, true) as is_same
    from foreign_answers as given
    left join forecast_answers as landed
        on
            given.model = landed.model
            and given.source = landed.source
            and given.question_id = landed.question_id
            and given.protocol = landed.protocol
    left join releases on given.model = releases.model
),

wanted as (
    select
        model,
        source,
        question_id,
        protocol,
        known_released as released,
        case when is_same then coalesce(probabilities, landed_probabilities) else probabilities end
            as probabilities,
        case when is_same then coalesce(p_correct, landed_p_correct) else p_correct end
            as p_correct,
        case when is_same then coalesce(p_chosen, landed_p_chosen) else p_chosen end as p_chosen,
        case when is_same then coalesce(chosen_index, landed_chosen_index) else chosen_index end
            as chosen_index,
        true as is_parsed,
        is_correct
    from matched
)

select *
from wanted
anti join forecast_answers as landed
    on
        wanted.model = landed.model
        and wanted.source = landed.source
        and wanted.question_id = landed.question_id
        and wanted.protocol = landed.protocol
        and wanted.released is not distinct from landed.released
        and wanted.probabilities is not distinct from landed.probabilities
        and wanted.p_correct is not distinct from landed.p_correct
        and wanted.p_chosen is not distinct from landed.p_chosen
        and wanted.chosen_index is not distinct from landed.chosen_index
        and wanted.is_correct = landed.is_correct;
