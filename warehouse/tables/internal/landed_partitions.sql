-- The version of each partition in table documents.
-- Grain: one row per source, month.
create table if not exists internal.landed_partitions (
    source varchar not null,
    month date,
    partition_digest varchar not null,
    partition_version integer not null,
    num_documents bigint not null,
    num_bytes bigint not null,
    regime varchar default 'cleaner-1'
);

-- For databases of before this column; core.corpus.partition.FIRST_REGIME.
alter table internal.landed_partitions
add column if not exists regime varchar default 'cleaner-1';
