-- The status of each item of a puzzle, by the strict and by the lenient rules.
-- Grain: one row per model, puzzle, protocol, split, item, rules.
-- Units: is_correct is NULL if there was an error: the item is not scored.
-- Source: docs/metrics.md (Puzzles).
create or replace view internal.scylla_judged_answers as
with readings as (
    select
        *,
        unnest(['strict', 'lenient']) as rules,
        unnest([status, lenient_status]) as read_as
    from internal.scylla_answers
)

select
    model,
    puzzle,
    protocol,
    split,
    item,
    rules,
    read_as as status,
    case when read_as <> 'error' then read_as = 'correct' end as is_correct,
    num_tokens
from readings;
