-- Accuracy of a model in tasks that were made from the texts of a month.
-- Grain: one row per model, source, task, protocol, month.
-- Units: shares, 0 to 1. accuracy_low and accuracy_high bound Wilson's 95 % interval: would other
--   documents of this month say the same? Each task is from another document, and they count as
--   independent. expected_accuracy is that of guessing. Answers that cannot be read are wrong.
--   is_after_cutoff: the month is after the model's cutoff, or from its release on if the cutoff is
--   unknown; NULL if neither is known (reason). source: of the texts; task: cloze, code or lead.
-- Source: docs/metrics.md (Tasks from texts).
create or replace view tasks.task_accuracy_monthly as
with counted as (
    select
        model,
        split_part(source, ':task-', 1) as source,
        split_part(source, ':task-', 2) as task,
        protocol,
        cast(date_trunc('month', opened) as date) as month,
        bool_or(is_test) as is_after_cutoff,
        count(*) as num_tasks,
        count(*) filter (where not is_parsed) as num_unparsed,
        count(*) filter (where is_correct) as num_correct,
        avg(expected) as expected_accuracy
    from internal.judged_answers_details
    where is_task
    group by all
)

select
    model,
    source,
    task,
    protocol,
    month,
    num_correct / num_tasks as accuracy,
    wilson_low(num_correct, num_tasks) as accuracy_low,
    wilson_high(num_correct, num_tasks) as accuracy_high,
    expected_accuracy,
    is_after_cutoff,
    num_tasks,
    num_correct,
    num_unparsed,
    case when is_after_cutoff is null then 'cutoff and release unknown' end as reason
from counted;
