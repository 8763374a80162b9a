-- The judged answer of each model to each item of a puzzle, without its text.
-- Grain: one row per model, puzzle, protocol, split, item.
-- Units: status is by the strict rules, lenient_status by those that forgive form, paper_status by
--   those of the paper. num_tokens is of the whole answer; NULL if the model does not say it.
-- Source: `tidemark scylla run`; docs/metrics.md (Puzzles).
create or replace view scylla_items as
select
    model,
    puzzle,
    protocol,
    split,
    item,
    status,
    lenient_status,
    paper_status,
    num_tokens,
    reason
from internal.scylla_answers;
