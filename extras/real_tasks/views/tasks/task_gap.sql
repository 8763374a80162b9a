-- Accuracy in tasks made from texts, after a model's cutoff less before it.
-- Grain: one row per model, source, task, protocol.
-- Units: shares, 0 to 1; gap is below 0 if the model is worse after its cutoff. accuracy_before and
--   accuracy_after are over all tasks of these months. gap_low_documents and gap_high_documents
--   bound Newcombe's 95 % interval: would other documents of these months say the same? It does not
--   say that other months would. reason: why the gap is NULL.
-- Source: Newcombe 1998, "Interval estimation for the difference between independent proportions",
--   Statistics in Medicine 17, method 10; docs/metrics.md (Tasks from texts).
create or replace view tasks.task_gap as
with counted as (
    select
        t.model,
        t.source,
        t.task,
        t.protocol,
        any_value(m.cutoff) as cutoff,
        bool_and(t.is_after_cutoff is null) as is_unknown,
        coalesce(sum(t.num_tasks) filter (where not t.is_after_cutoff), 0) as num_before,
        coalesce(sum(t.num_tasks) filter (where t.is_after_cutoff), 0) as num_after,
        sum(t.num_correct) filter (where not t.is_after_cutoff) as right_before,
        sum(t.num_correct) filter (where t.is_after_cutoff) as right_after
    from tasks.task_accuracy_monthly as t
    left join main.models as m on t.model = m.model
    group by t.model, t.source, t.task, t.protocol
),

shares as (
    select
        *,
        right_before / nullif(num_before, 0) as accuracy_before,
        right_after / nullif(num_after, 0) as accuracy_after,
        accuracy_after - accuracy_before as gap
    from counted
)

select
    model,
    source,
    task,
    protocol,
    gap,
    gap - sqrt(
        pow(accuracy_after - wilson_low(right_after, num_after), 2)
        + pow(wilson_high(right_before, num_before) - accuracy_before, 2)
    ) as gap_low_documents,
    gap + sqrt(
        pow(wilson_high(right_after, num_after) - accuracy_after, 2)
        + pow(accuracy_before - wilson_low(right_before, num_before), 2)
    ) as gap_high_documents,
    accuracy_before,
    accuracy_after,
    cutoff,
    cast(num_before as bigint) as num_before,
    cast(num_after as bigint) as num_after,
    case
        when is_unknown then 'no cutoff or release is known'
        when num_before = 0 then 'no task before the cutoff'
        when num_after = 0 then 'no task after the cutoff'
    end as reason
from shares;
