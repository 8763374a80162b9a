-- The landed cells, with sums over their chunk_losses, written in the same transaction.
-- Grain: one row per model, source, month, protocol (a cell).
-- Units: sums are over the measured chunks; NULL if there are none. standard_error is the jackknife
--   error of nll_nats / (ln 2 * num_bytes), in bits per byte, over clusters of documents
--   (documents.cluster_id, else the document alone). degrees_of_freedom are Satterthwaite's. Both
--   are NULL if all measured chunks are in one cluster. ADR 0015.
-- No column depends on the clock: a killed and resumed run ends with the same rows.
create table if not exists internal.landed_cells (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    partition_digest varchar,
    partition_version integer,
    scoring varchar,
    num_documents bigint not null,
    num_chunks bigint not null,
    num_unmeasured bigint not null,
    num_not_finite bigint not null,
    nll_nats double,
    num_tokens bigint,
    num_chars bigint,
    num_bytes bigint,
    num_clusters bigint not null,
    standard_error double,
    degrees_of_freedom double,
    fingerprint bigint not null
);
