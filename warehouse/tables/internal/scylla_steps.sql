-- The number of steps that an item of a puzzle asks for, which sets its complexity.
-- Grain: one row per model, puzzle, protocol, split, item; only puzzles that ask for k steps.
-- Source: the parameter k of the item's input; `tidemark scylla run`.
create table if not exists internal.scylla_steps (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    split varchar not null,
    item integer not null,
    steps integer not null
);
