-- Alarms as sentences: months that a model predicts suspiciously well, cells around a drift.
select
    model || ' predicts ' || strftime(month, '%Y-%m') || ' of ' || coalesce(source, 'all sources')
    || ' better than its neighbours explain' as alarm
from suspected_contamination
where protocol = $protocol and is_suspected
union all
select
    sum(num_suspect_cells) || ' cells of ' || model || ' were scored around a drift of the canary'
        as alarm
from coverage
group by model
having sum(num_suspect_cells) > 0
order by alarm
