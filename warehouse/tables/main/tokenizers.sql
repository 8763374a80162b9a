-- The tokenizers of models with cells scored by tidemark; compressors have no tokenizer.
-- Grain: one row per model, revision.
-- Source: the .json beside a cell's losses.
create table if not exists tokenizers (
    model varchar not null,
    revision varchar not null,
    vocabulary_size bigint not null, -- ids
    start_token varchar, -- what precedes a text (BOS, else EOS); NULL = neither
    has_byte_tokens boolean not null -- whether every byte has a token of its own
);
