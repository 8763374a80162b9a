-- What follows from the staged answers once they are sound: which option was right, and what
-- probability it and the chosen one were given. The likeliest option is the chosen one where none
-- is named.
create or replace temp table foreign_answers as
with chosen as (
    select
        * replace (
            coalesce(
                chosen_index,
                case
                    when len(list_filter(probabilities, lambda p: p = list_max(probabilities))) = 1
                        then list_position(probabilities, list_max(probabilities)) - 1
                end
            ) as chosen_index
        )
    from staged_foreign_answers
),

known as (
    select
        * replace (
            cast(num_options as integer) as num_options,
            cast(chosen_index as integer) as chosen_index,
            case
                when answer_index is not null then cast(answer_index as integer)
                when is_correct then cast(chosen_index as integer)
                when num_options = 2 then cast(1 - chosen_index as integer)
            end as answer_index
        )
    from chosen
)

select
    * replace (
        coalesce(p_correct, probabilities[answer_index + 1]) as p_correct,
        case when len(tags) > 0 then tags end as tags
    ),
    case
        when probabilities is not null
            then coalesce(probabilities[chosen_index + 1], list_max(probabilities))
        -- Of several wrong options, the one that was chosen had a probability that is not told.
        when num_options = 2 then case when is_correct then p_correct else 1 - p_correct end
    end as p_chosen,
    cast(date_trunc('month', coalesce(resolved, closed, opened)) as date) as month
from known;
