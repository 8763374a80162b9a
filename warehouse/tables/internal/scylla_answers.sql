-- The judged answer of a model to each item of a puzzle.
-- Grain: one row per model, puzzle, protocol, split, item.
-- Texts are left out: no figure needs them, and they would be the largest part of every snapshot.
--   Prompts and models' texts are in the file scylla_cells.answer_cell under the data root.
-- Source: `tidemark scylla run`.
create table if not exists internal.scylla_answers (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    split varchar not null,
    item integer not null,
    status varchar not null,
    lenient_status varchar not null,
    paper_status varchar not null,
    num_tokens integer,
    reason varchar
);
