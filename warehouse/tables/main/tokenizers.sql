-- The tokenizers of models with cells scored by tidemark; compressors have no tokenizer.
-- Grain: one row per model, revision.
-- Source: the .json file next to a cell's losses.
create table if not exists tokenizers (
    model varchar not null,
    revision varchar not null,
    vocabulary_size bigint not null,
    start_token varchar,
    has_byte_tokens boolean not null
);
