-- The questions of staged answers that differ from the landed questions. A NULL in the file keeps
-- the landed value (the outcome only if no row contradicts it, see derive_imported_answers).
-- Crawled questions never change.
create or replace temp table changed_imported_questions as
with given as (
    select
        source,
        question_id,
        any_value(month) as month,
        any_value(opened) as opened,
        any_value(closed) as closed,
        any_value(resolved) as resolved,
        any_value(num_options) as num_options,
        any_value(answer_index) as answer_index,
        any_value(tags) as tags
    from imported_answers
    group by source, question_id
),

wanted as (
    select
        given.source,
        given.question_id,
        given.opened,
        coalesce(given.closed, landed.closed) as closed,
        coalesce(given.resolved, landed.resolved) as resolved,
        given.num_options,
        given.answer_index,
        'resolved' as status,
        coalesce(given.tags, landed.tags) as tags
    from given
    left join forecast_questions as landed
        on given.source = landed.source and given.question_id = landed.question_id
    where landed.title is null
),

dated as (
    select
        *,
        cast(date_trunc('month', coalesce(resolved, closed, opened)) as date) as month
    from wanted
)

select *
from dated
anti join forecast_questions as landed
    on
        dated.source = landed.source
        and dated.question_id = landed.question_id
        and dated.month = landed.month
        and dated.opened = landed.opened
        and dated.closed is not distinct from landed.closed
        and dated.resolved is not distinct from landed.resolved
        and dated.num_options = landed.num_options
        and dated.answer_index is not distinct from landed.answer_index
        and dated.tags is not distinct from landed.tags;
