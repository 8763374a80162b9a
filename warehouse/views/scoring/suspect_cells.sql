-- Cells whose losses may be wrong: the canary drifted, without a good run in between.
-- Grain: one row per model, source, month, protocol (a cell).
-- A run of the canary is good if |drift| <= 1e-6. A cell is suspect if a bad run of its device and
--   dtype is next to it in time. No good run may lie between the scoring and the bad run. Cells
--   without a cost record, or of a device without runs, are not suspect. To clear a suspect cell,
--   move its files out of the data root and score it again.
-- Units: drift is relative; drifted_at is UTC.
-- Source: reads cell_costs and canary_runs.
create or replace view internal.suspect_cells as
with bad_runs as (
    select *
    from main.canary_runs
    where abs(drift) > 1e-6
),

good_runs as (
    select *
    from main.canary_runs
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
    from main.cell_costs as c
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
