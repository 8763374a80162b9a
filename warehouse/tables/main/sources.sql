-- The landed sources, for joins. For imported sources, only the name is known.
-- Grain: one row per source.
create table if not exists sources (
    source varchar not null,
    title varchar,
    licence varchar,
    language varchar,
    category varchar
);
