-- What figures of forecasting are from: ways of asking, days on which questions were open.
select
    string_agg(distinct a.protocol, ', ' order by a.protocol) as protocol,
    [cast(min(q.opened) as varchar), cast(max(q.resolved) + 1 as varchar)]
        as "window",
    null as num_documents,
    count(distinct a.source || '/' || a.question_id) as num_questions,
    count(*) as num_answers,
    null as measured_at
from forecast_answers as a
left join forecast_questions as q on a.source = q.source and a.question_id = q.question_id
where not contains(a.source, ':task-')
