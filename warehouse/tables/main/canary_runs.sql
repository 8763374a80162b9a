-- Runs of the canary: a frozen model scores a frozen partition; the loss must not change.
-- Grain: one row per run (a moment, a device, a dtype).
-- Units: nats, summed over the partition; drift is relative, (nll_nats - expected_nats) /
--   expected_nats; run_at is UTC.
-- Source: `tidemark check numerics`. View scored_cells marks the affected cells.
create table if not exists canary_runs (
    run_at timestamp not null,
    device varchar not null,
    dtype varchar not null,
    versions varchar not null,
    nll_nats double not null,
    expected_nats double not null,
    drift double not null,
    num_tokens bigint not null
);
