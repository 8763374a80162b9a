-- The sources that can be crawled, for joining.
-- Grain: one row per source.
create table if not exists sources (
    source varchar primary key,
    title varchar,
    licence varchar,
    language varchar,
    category varchar
);
