-- Accuracy in tasks made from texts, before and after each model's cutoff, and their difference.
-- accuracy_before_low: lower end of Wilson's 95 % interval of accuracy_before [share]
-- accuracy_before_high: upper end of the interval [share]
-- accuracy_after_low: lower end of Wilson's 95 % interval of accuracy_after [share]
-- accuracy_after_high: upper end of the interval [share]
select
    *,
    wilson_low(accuracy_before * num_before, num_before) as accuracy_before_low,
    wilson_high(accuracy_before * num_before, num_before) as accuracy_before_high,
    wilson_low(accuracy_after * num_after, num_after) as accuracy_after_low,
    wilson_high(accuracy_after * num_after, num_after) as accuracy_after_high
from tasks.task_gap
order by source, task, protocol, gap, model
