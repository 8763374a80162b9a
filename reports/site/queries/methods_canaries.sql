-- Runs of the canary, by device; a relative drift above 1e-6 counts.
select
    device,
    count(*) as num_runs,
    count(*) filter (abs(drift) > 1e-6) as num_drifted,
    min(run_at) as first_run,
    max(run_at) as last_run
from canary_runs
group by device
order by device
