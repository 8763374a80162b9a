-- Accuracy in tasks made from texts, before and after each model's cutoff, and their difference.
select *
from task_gap
order by source, task, protocol, gap, model
