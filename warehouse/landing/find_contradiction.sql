-- The first staged answer whose question has another outcome in a row before it.
with compared as (
    select
        *,
        first_value(answer_index ignore nulls) over (question order by row_number) as first_answer,
        first_value(resolved ignore nulls) over (question order by row_number) as first_resolved
    from foreign_answers
    window question as (partition by source, question_id)
)

select
    row_number,
    'question_id' as column_name,
    question_id as given,
    'the same outcome, and the same resolved, wherever a question comes' as expected
from compared
where answer_index <> first_answer or resolved <> first_resolved
order by row_number
limit 1;
