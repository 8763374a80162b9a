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
