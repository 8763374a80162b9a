-- The documents of every landed partition, without their text or media.
-- Grain: one row per source, month, document.
create table if not exists documents (
    document_id varchar not null,
    source varchar not null,
    month date,
    category varchar,
    language varchar,
    licence varchar not null,
    cluster_id varchar,
    num_chars bigint not null,
    num_bytes bigint not null
);
