-- Accuracy of a model's answers to a puzzle.
-- Grain: one row per model, puzzle, protocol, split, rules (strict or lenient).
-- Units: shares, 0 to 1; accuracy_low and _high bound Wilson's 95 % interval. Unparsed and
--   truncated answers count as wrong; errors are not scored. parse_rate is the share of scored
--   items from which an answer was read. A cell with too few inputs has rows without items.
-- Source: Wilson 1927; docs/metrics.md (Puzzles).
-- Further columns: internal.scylla_accuracy_details.
create or replace view papers.scylla_accuracy as
select
    model,
    puzzle,
    protocol,
    split,
    rules,
    accuracy,
    accuracy_low,
    accuracy_high,
    num_items,
    num_correct,
    num_unparsed,
    num_truncated,
    num_errors,
    parse_rate,
    cell_status,
    level,
    reason
from internal.scylla_accuracy_details;
