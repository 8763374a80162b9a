-- Likelihoods of the right answers to the items of puzzles, and of their prompts.
-- Grain: one row per model, puzzle, protocol, split, item.
-- Of at most six right answers to an item, the one with the highest probability per token counts.
-- Source: `tidemark scylla run --prompt mixed-8-likelihood`.
create table if not exists internal.scylla_likelihoods (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    split varchar not null,
    item integer not null,
    level integer,
    complexity varchar not null,
    token_nats double[],
    prompt_nats double,
    prompt_tokens integer,
    reason varchar,
    answers_digest varchar
);
