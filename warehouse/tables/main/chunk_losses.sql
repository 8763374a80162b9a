-- Losses of chunks: the numerators and denominators of every figure.
-- Grain: one row per model, source, month, protocol, document, chunk.
-- Units: nll_nats is the summed negative log-likelihood in nats; NULL if not measured (see reason).
--   num_tokens, num_chars (code points) and num_bytes (UTF-8) measure exactly the chunk's text.
-- Source: losses/ of the data root, or imported files of schema LOSSES.
-- Landing checks that rows are unique; an index would take more time than the whole landing.
create table if not exists chunk_losses (
    model varchar not null,
    revision varchar not null,
    source varchar not null,
    month date,
    document_id varchar not null,
    chunk_index integer not null,
    protocol varchar not null,
    nll_nats double,
    num_tokens bigint not null,
    num_chars bigint not null,
    num_bytes bigint not null,
    reason varchar
);
