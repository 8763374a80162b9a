-- The landed models, for joins. For imported models, only the name may be known.
-- Grain: one row per model.
create table if not exists models (
    model varchar not null,
    kind varchar, -- causal_lm, rwkv, remote, control or reference
    location varchar, -- hub id, folder or compressor
    revision varchar,
    released date,
    cutoff date, -- first day of the LAST month that the model has seen
    cutoff_provenance varchar, -- stated, inferred or planted
    cutoff_precision varchar,
    cutoff_url varchar,
    parameters bigint,
    context bigint, -- tokens
    is_chat boolean,
    notes varchar
);
