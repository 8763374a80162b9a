-- Bootstrap replicates of a cell's accuracies, for intervals and for the critical complexity.
-- Grain: one row per model, puzzle, protocol, ood_split, rules, replicate (1 to 400).
-- Item i of both splits is drawn as a pair. All ood_splits and rules of a cell have the same draws.
--   The rows depend only on the cell's name and its answers.
-- Source: warehouse/land/puzzles.py.
create table if not exists internal.scylla_replicates (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    ood_split varchar not null,
    rules varchar not null,
    replicate smallint not null,
    id_accuracy double not null,
    ood_accuracy double not null
);
