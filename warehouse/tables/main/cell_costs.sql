-- Time, memory, energy and device of scoring a cell, and its number of lossy documents.
-- Grain: one row per model, source, month, protocol (a cell); imported cells, and cells scored by a
--   version without records, have no row.
-- Units: as in the names; scored_at is UTC. num_tokens_read includes the context.
-- Source: the .json beside a cell's losses. scored_at, seconds, peak_memory_bytes and energy_joules
--   differ between runs: a killed and resumed run ends with equal losses, but other values here.
create table if not exists cell_costs (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date, -- first day; NULL = undated corpus
    protocol varchar not null,
    scored_at timestamp not null, -- when scoring ended
    device varchar not null, -- kind and name
    dtype varchar not null, -- of the weights
    batch_tokens bigint, -- token budget of a batch; NULL = there are no batches
    context bigint, -- tokens of a window; NULL = a compressor, which has none
    versions varchar not null, -- JSON: version by library
    seconds double not null, -- wall clock
    num_tokens_read bigint not null, -- inputs of the model
    peak_memory_bytes bigint not null,
    energy_joules double, -- NULL = the driver does not tell
    num_lossy_documents bigint not null
);
