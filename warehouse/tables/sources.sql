-- The sources that have landed, for joining. Of imported ones, only the name is there.
-- Grain: one row per source.
create table if not exists sources (
    source varchar not null,
    title varchar,
    licence varchar,
    language varchar,
    category varchar
);
