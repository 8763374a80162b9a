-- What has landed in chunk_losses; written in the transaction that lands the rows.
-- Grain: one row per model, source, month, protocol (a cell).
-- No clock is read: a killed and resumed run ends with the same rows as an undisturbed one.
create table if not exists landed_cells (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date, -- first day; NULL = undated corpus
    protocol varchar not null,
    partition_digest varchar, -- of the documents scored; NULL where the losses came from elsewhere
    scoring varchar, -- hash over protocol, dtype and the scorer's version; NULL likewise
    num_documents bigint not null,
    num_chunks bigint not null,
    num_unmeasured bigint not null -- chunks whose nll_nats is NULL
);
