-- The canary's first loss on a device in a dtype, by which later ones are judged.
select nll_nats
from canary_runs
where device = $device and dtype = $dtype and isfinite(nll_nats)
order by run_at
limit 1;
