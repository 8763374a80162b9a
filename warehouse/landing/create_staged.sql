-- Where losses wait that cannot be read from where they are; columns as chunk_losses.
-- Spelt out, and run outside any transaction: in DuckDB 2.0.0 a table that was created as an empty
-- result still looks empty after the same transaction has filled it (seen 2026-11-20).
create or replace temp table staged (
    model varchar,
    revision varchar,
    source varchar,
    month date,
    document_id varchar,
    chunk_index integer,
    protocol varchar,
    nll_nats double,
    num_tokens bigint,
    num_chars bigint,
    num_bytes bigint,
    reason varchar
);
