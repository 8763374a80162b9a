-- Alarms as sentences: months that a model predicts suspiciously well, cells around a drift.
select
    model || ' predicts ' || strftime(month, '%Y-%m') || ' of ' || coalesce(source, 'all sources')
    || ' better than its neighbours explain' as alarm
from suspected_contamination
where protocol = $protocol and is_suspected
union all
select count(*) || ' cells of ' || model || ' were scored around a drift of the canary'
from suspect_cells
group by model
order by alarm
