-- Runs of the canary, by device; a relative drift above 1e-6 counts.
-- num_runs: runs of the canary [runs]
-- num_drifted: runs whose loss differed from the known one [runs]
-- first_run: day of the first run [date]
-- last_run: day of the last run [date]
select
    device,
    count(*) as num_runs,
    count(*) filter (abs(drift) > 1e-6) as num_drifted,
    min(run_at) as first_run,
    max(run_at) as last_run
from canary_runs
group by device
order by device
