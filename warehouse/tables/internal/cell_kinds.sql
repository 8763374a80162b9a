-- Sums of each cell by kind of document, over measured chunks of documents that have landed.
-- Grain: one row per model, source, month, protocol, kind.
-- kind: the first part of documents.category (cs of cs.CL) and documents.language.
-- Units: nats and UTF-8 bytes. standard_error is the jackknife error of
--   nll_nats / (ln 2 * num_bytes), in bits per byte, over clusters of documents;
--   degrees_of_freedom are Satterthwaite's. Both are NULL if the kind has one cluster in the month.
create table if not exists internal.cell_kinds (
    model varchar not null,
    source varchar not null,
    month date,
    protocol varchar not null,
    kind varchar not null,
    num_documents bigint not null,
    nll_nats double not null,
    num_bytes bigint not null,
    standard_error double,
    degrees_of_freedom double
);
