-- The scoring protocols, for joins.
-- Grain: one row per protocol.
create table if not exists protocols (
    protocol varchar not null,
    description varchar,
    definition varchar,
    hash varchar
);
