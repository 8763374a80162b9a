-- The landed cells, with sums over their chunk_losses, written in the same transaction.
-- Grain: one row per model, source, month, protocol (a cell).
-- Units: sums are over the measured chunks; NULL if there are none. standard_error is that of
--   nll_nats / (ln 2 * num_bytes), in bits per byte: the jackknife's over clusters of documents
--   (documents.cluster_id, else the document alone), with Satterthwaite's degrees of freedom; both
--   are NULL if all measured chunks are in one cluster. ADR 0015.
-- No column depends on the clock: a killed and resumed run ends with the same rows.
create table if not exists internal.landed_cells (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date, -- first day; NULL = undated corpus
    protocol varchar not null,
    partition_digest varchar, -- of the documents scored; NULL where the losses came from elsewhere
    partition_version integer, -- which version has the digest; NULL likewise, and where it is gone
    scoring varchar, -- hash over protocol, dtype and the scorer's version; NULL likewise
    num_documents bigint not null,
    num_chunks bigint not null,
    num_unmeasured bigint not null, -- chunks whose nll_nats is NULL
    num_not_finite bigint not null, -- of these, where the model broke on what it should measure
    nll_nats double,
    num_tokens bigint,
    num_chars bigint,
    num_bytes bigint,
    num_clusters bigint not null, -- with a measured chunk
    standard_error double,
    degrees_of_freedom double,
    fingerprint bigint not null -- of what was measured: documents, and bytes of each
);
