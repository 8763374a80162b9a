-- Cells whose losses may be wrong: the canary drifted, and no good run of it lies between.
-- Grain: one row per model, source, month, protocol (a cell).
-- A run is good where |drift| <= 1e-6. A cell is suspect where a bad run of its device and dtype is
--   next to it in time with no good run in between: scored after the last good run before the bad
--   one, and before the next good run after it. Cells without a record, or of a device that has no
--   runs, are not suspect. Score a suspect cell again (delete its files) to be rid of it.
-- Units: drift is relative; drifted_at is UTC.
-- Source: reads cell_costs and canary_runs.
create or replace view suspect_cells as
with bad_runs as (
    select *
    from canary_runs
    where abs(drift) > 1e-6
),

good_runs as (
    select *
    from canary_runs
    where abs(drift) <= 1e-6
),

suspicions as (
    select
        c.model,
        c.revision,
        c.source,
        c.month,
        c.protocol,
        c.scored_at,
        c.device,
        c.dtype,
        bad.run_at,
        bad.drift
    from cell_costs as c
    inner join bad_runs as bad on c.device = bad.device and c.dtype = bad.dtype
    where not exists (
        select 1
        from good_runs as good
        where
            good.device = bad.device
            and good.dtype = bad.dtype
            and good.run_at >= least(bad.run_at, c.scored_at)
            and good.run_at <= greatest(bad.run_at, c.scored_at)
    )
)

select
    model,
    revision,
    source,
    month,
    protocol,
    scored_at,
    device,
    dtype,
    min(run_at) as drifted_at,
    arg_max(drift, abs(drift)) as drift
from suspicions
group by model, revision, source, month, protocol, scored_at, device, dtype;
