-- Time, memory, energy and device of scoring a cell, and its number of lossy documents.
-- Grain: one row per model, source, month, protocol (a cell). Imported cells have no row, nor cells
--   scored by a version without records.
-- Units: as in the names; scored_at is UTC. num_tokens_read includes the context.
-- Source: the .json file next to a cell's losses. scored_at, seconds, peak_memory_bytes,
--   energy_joules and matmul_flops differ between runs: a killed and resumed run has the same
--   losses, but other costs.
create table if not exists cell_costs (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    scored_at timestamp not null,
    device varchar not null,
    dtype varchar not null,
    batch_tokens bigint,
    context bigint,
    versions varchar not null,
    seconds double not null,
    num_tokens_read bigint not null,
    peak_memory_bytes bigint not null,
    energy_joules double,
    num_lossy_documents bigint not null,
    active_parameters bigint,
    matmul_flops double,
    copied_from varchar
);
-- Warehouses of earlier versions lack these columns.
alter table cell_costs add column if not exists active_parameters bigint;
alter table cell_costs add column if not exists matmul_flops double;
alter table cell_costs add column if not exists copied_from varchar;
