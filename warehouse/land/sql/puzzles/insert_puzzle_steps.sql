-- Insert the number of steps of a cell's items, if its puzzle has steps: a probe whose input ends
-- with k. Input: puzzle_answers_to_land (PUZZLE_ANSWERS); puzzle_to_land, the row of scylla_cells.
insert into internal.scylla_steps by name
select
    answers.model,
    answers.puzzle,
    answers.protocol,
    answers.split,
    answers.item,
    regexp_extract(answers.input, '\$k\$ = ([0-9]{1,9})$', 1)::integer as steps
from puzzle_answers_to_land as answers
inner join puzzle_to_land as cells
    on answers.puzzle = cells.puzzle
where cells.level is null and regexp_matches(answers.input, '\$k\$ = [0-9]{1,9}$');
