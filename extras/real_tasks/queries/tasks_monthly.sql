-- Accuracy in tasks made from the texts of each month.
-- series: model and, where a model was asked in several ways, how it was asked
-- lane: source of the texts and kind of task
select
    *,
    source || ', ' || task as lane,
    case
        when count(distinct protocol) over (partition by model) > 1
            then model || ', ' || protocol
        else model
    end as series
from tasks.task_accuracy_monthly
order by lane, series, month
