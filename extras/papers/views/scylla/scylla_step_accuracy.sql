-- Accuracy by the number of steps that an item asks for; the work doubles from row to row.
-- Grain: one row per model, puzzle, protocol, split, rules, steps.
-- Units: accuracy is a share; accuracy_low to _high is Wilson's 95 % interval. Items with an error
--   are not scored. accuracy is NULL if all items have errors.
-- Source: docs/metrics.md (Puzzles).
create or replace view papers.scylla_step_accuracy as
select
    judged.model,
    judged.puzzle,
    judged.protocol,
    judged.split,
    judged.rules,
    steps.steps,
    avg(judged.is_correct::integer) as accuracy,
    wilson_low(count(*) filter (where judged.is_correct), count(judged.is_correct))
        as accuracy_low,
    wilson_high(count(*) filter (where judged.is_correct), count(judged.is_correct))
        as accuracy_high,
    avg(judged.num_tokens) filter (where judged.is_correct is not null) as mean_tokens,
    count(judged.is_correct) as num_items,
    case when num_items = 0 then 'all items have errors: ' || count(*) end as reason
from internal.scylla_judged_answers as judged
inner join internal.scylla_steps as steps
    on
        judged.model = steps.model
        and judged.puzzle = steps.puzzle
        and judged.protocol = steps.protocol
        and judged.split = steps.split
        and judged.item = steps.item
group by
    judged.model, judged.puzzle, judged.protocol, judged.split, judged.rules, steps.steps;
