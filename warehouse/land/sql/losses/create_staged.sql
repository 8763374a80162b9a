-- The staging table for losses that cannot be read in place; columns as chunk_losses.
-- Columns are listed, and the statement runs outside a transaction: in DuckDB 2.0.0 a table created
-- from an empty result still looks empty after the same transaction has filled it (2026-11-20).
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
