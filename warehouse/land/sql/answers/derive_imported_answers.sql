-- Derive, from checked staged answers, the chosen option, the true option and the probabilities of
-- both. If no choice is named, the likeliest option is the chosen one. The true option comes from
-- any row of the question, else from the landed question unless the rows contradict the landed
-- outcome.
create or replace temp table imported_answers as
with peaked as (
    select
        *,
        list_max(probabilities) as highest
    from staged_imported_answers
),

chosen as (
    select
        * exclude (highest)
        replace (
            cast(num_options as integer) as num_options,
            cast(answer_index as integer) as answer_index,
            cast(
                coalesce(
                    chosen_index,
                    case
                        when len(list_filter(probabilities, lambda p: p = highest)) = 1
                            then list_position(probabilities, highest) - 1
                    end,
                    case
                        when is_correct then answer_index
                        when num_options = 2 then 1 - answer_index
                    end
                ) as integer
            ) as chosen_index
        )
    from peaked
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
