-- A question as an example: the newest one with a title.
select
    source,
    title,
    opened,
    resolved,
    url,
    licence
from forecast_questions
where title is not null and status = 'resolved' and not contains(source, ':task-')
order by resolved desc, source asc, question_id asc
limit 1
