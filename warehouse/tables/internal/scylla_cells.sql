-- The cells of answers to puzzles, each with its sampling and its counts.
-- Grain: one row per model, puzzle, protocol.
-- Source: `tidemark scylla run`. A cell without answers (too few inputs) has a row only here.
create table if not exists internal.scylla_cells (
    model varchar not null,
    revision varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    status varchar not null, -- complete or insufficient_id_data
    level integer, -- 1 to 5; NULL: a probe
    complexity varchar not null,
    num_completions integer not null,
    num_id_elements integer not null,
    num_distinct_elements integer not null,
    num_id_examples integer not null,
    num_repaired integer not null,
    num_items integer not null,
    num_errors integer not null,
    answers_digest varchar, -- SHA-256 of the file of answers; NULL: there is none
    answer_cell varchar not null, -- path of the file of answers
    num_anchors integer[] not null -- how many puzzles levels 1 to 5 had
);
