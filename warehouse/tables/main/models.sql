-- The landed models, for joins. For imported models, only the name may be known.
-- Grain: one row per model.
create table if not exists models (
    model varchar not null,
    kind varchar,
    location varchar,
    revision varchar,
    released date,
    cutoff date,
    cutoff_provenance varchar,
    cutoff_precision varchar,
    cutoff_url varchar,
    parameters bigint,
    context bigint,
    is_chat boolean,
    notes varchar,
    family varchar,
    role varchar
);

-- For databases of before these columns.
alter table models add column if not exists family varchar;
alter table models add column if not exists role varchar;
