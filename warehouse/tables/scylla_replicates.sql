-- Bootstrap replicates of a cell's accuracies, for intervals and for the critical complexity.
-- Grain: one row per model, puzzle, protocol, ood_split, rules, replicate (1 to 400).
-- Item i in distribution and item i out of it are drawn together, and the same items of a cell for
--   either ood_split and either rules. A pure function of the cell's name and its answers.
-- Source: warehouse/own_puzzles.py.
create table if not exists scylla_replicates (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    ood_split varchar not null, -- ood or ood_near
    rules varchar not null, -- strict or lenient
    replicate smallint not null,
    id_accuracy double not null,
    ood_accuracy double not null
);
