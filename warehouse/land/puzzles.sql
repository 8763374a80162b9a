-- Landing of answers to puzzles.
-- In: the rows of one cell. Out: the tables scylla_* have the present rows of the cell, once.

-- name: count_puzzle_steps
-- The number of steps of a cell's items, if its puzzle has steps: a probe whose input ends with k.
-- Input: puzzle_rows_to_land (PUZZLE_ANSWERS). Parameter: level, of the puzzle; NULL for a probe.
create or replace temp table puzzle_steps as
select
    model,
    puzzle,
    protocol,
    split,
    item,
    cast(regexp_extract(input, '\$k\$ = ([0-9]{1,9})$', 1) as integer) as steps
from puzzle_rows_to_land
where cast($level as integer) is null and regexp_matches(input, '\$k\$ = [0-9]{1,9}$');
