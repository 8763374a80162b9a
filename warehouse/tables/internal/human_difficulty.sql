-- Ratings of the difficulty of puzzles by people, for view scylla_human_difficulty.
-- Grain: one row per puzzle, complexity.
-- Units: the study's own scale; a higher rating is more difficult.
-- Source: `tidemark land ratings`.
create table if not exists internal.human_difficulty (
    puzzle varchar not null,
    complexity varchar not null,
    rating double not null,
    num_raters integer,
    reference varchar
);
