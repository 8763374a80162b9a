-- Losses by class of byte: sums over the measured chunks of a cell, whose sums they add up to.
-- Grain: one row per model, source, month, protocol, byte_class; only classes that the text has.
-- Units: nats; num_bytes is UTF-8 text. A token's loss is shared equally over its bytes.
-- Cells have no rows if their scorer gives no loss per token (compressors), if the protocol joins
--   documents to a stream, or if they were scored before this table existed.
-- Source: the .json file next to a cell's losses; docs/metrics.md (Losses by class of byte).
create table if not exists byte_class_losses (
    model varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    byte_class varchar not null,
    nll_nats double not null,
    num_bytes bigint not null
);
