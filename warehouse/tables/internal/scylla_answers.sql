-- The judged answer of a model to each item of a puzzle.
-- Grain: one row per model, puzzle, protocol, split, item.
-- No texts: no figure needs them, and they would be most of every snapshot. Prompts and models'
--   texts are in the file scylla_cells.answer_cell under the data root.
-- Source: `tidemark scylla run`.
create table if not exists internal.scylla_answers (
    model varchar not null,
    puzzle varchar not null,
    protocol varchar not null,
    split varchar not null, -- id, ood or ood_near
    item integer not null, -- from 0; items of one number in all splits are of one shape
    status varchar not null, -- correct, wrong, unparsed, truncated or error
    lenient_status varchar not null,
    paper_status varchar not null, -- correct, wrong, unparsed or error
    num_tokens integer,
    reason varchar -- of an error
);
