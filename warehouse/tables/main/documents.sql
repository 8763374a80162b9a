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
    num_bytes bigint not null,
    title varchar,
    url varchar,
    event_date date,
    native_id varchar
);

-- For databases of before these columns. They are NULL until the partition lands again.
alter table documents add column if not exists title varchar;
alter table documents add column if not exists url varchar;
alter table documents add column if not exists event_date date;
alter table documents add column if not exists native_id varchar;
