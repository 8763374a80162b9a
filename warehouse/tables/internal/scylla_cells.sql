-- The cells of answers to puzzles, each with the record of its sampling and its counts.
-- Grain: one row per model, puzzle, protocol.
-- Source: `tidemark scylla run`. A cell without answers (too few inputs) has a row only here.
create table if not exists internal.scylla_cells (
    model varchar not null,
    revision varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    status varchar not null,
    level integer,
    complexity varchar not null,
    num_completions integer not null,
    num_id_elements integer not null,
    num_distinct_elements integer not null,
    num_id_examples integer not null,
    num_repaired integer not null,
    num_items integer not null,
    num_errors integer not null,
    answers_digest varchar,
    answer_cell varchar not null,
    num_anchors integer[] not null
);
