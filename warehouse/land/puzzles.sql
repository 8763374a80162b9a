-- Landing of answers to puzzles, their sums, bootstrap replicates, and likelihoods.
-- In: the rows of one cell. Out: each cell of the tables puzzle_* is the present one, once.

---------- Read what has landed

-- name: list_landed_puzzles
-- The landed cells of answers to puzzles, each with its record.
from internal.scylla_cells;

-- name: find_landed_likelihoods
-- One row if the likelihoods of a cell have landed. Parameters: model, puzzle, protocol, level,
-- complexity, digest.
select true as has_landed
from internal.scylla_likelihoods
where
    model = $model
    and puzzle = $puzzle
    and protocol = $protocol
    and level is not distinct from $level
    and complexity = $complexity
    and answers_digest = $digest
having count(*) > 0;

---------- Check

-- name: judge_puzzle_answers
-- The problem of each answer of a cell, NULL if the answer is valid. find_problem reads the first.
-- Input: puzzle_answers_to_land (PUZZLE_ANSWERS). Parameters: model, revision, puzzle, protocol,
-- num_items, is_complete. Row 0: a whole split is missing.
create or replace temp table judged_rows as
with numbered as (
    select
        *,
        row_number() over () as row_number,
        count(*) over (partition by split, item) as num_same,
        count(*) over (partition by split) as num_in_split
    from puzzle_answers_to_land
)

select
    row_number,
    case
        when model <> $model then ['model', model, $model]
        when revision <> $revision then ['revision', revision, $revision]
        when puzzle <> $puzzle then ['puzzle', puzzle, $puzzle]
        when protocol <> $protocol then ['protocol', protocol, $protocol]
        when split not in ('id', 'ood', 'ood_near')
            then ['split', split, 'id, ood or ood_near']
        when item not between 0 and $num_items - 1 or num_same > 1
            then ['item', split || ' ' || item, '0 to ' || ($num_items - 1) || ', each once']
        when num_in_split <> $num_items
            then [
                'split',
                split || ' of ' || num_in_split || ' items',
                $num_items || ' items, as the record says'
            ]
        when status not in ('correct', 'wrong', 'unparsed', 'truncated', 'error')
            then ['status', status, 'correct, wrong, unparsed, truncated or error']
        when lenient_status not in ('correct', 'wrong', 'unparsed', 'truncated', 'error')
            then [
                'lenient_status', lenient_status, 'correct, wrong, unparsed, truncated or error'
            ]
        when paper_status not in ('correct', 'wrong', 'unparsed', 'error')
            then ['paper_status', paper_status, 'correct, wrong, unparsed or error']
        when (status = 'error') <> (lenient_status = 'error')
            then ['lenient_status', lenient_status, 'error where status is, and only there']
        when (status = 'error') <> (paper_status = 'error')
            then ['paper_status', paper_status, 'error where status is, and only there']
        when num_tokens < 0 then ['num_tokens', cast(num_tokens as varchar), '0 or more']
    end as problem
from numbered
union all
select
    0 as row_number,
    ['split', 'not of both kinds', 'rows of id and rows of ood'] as problem
where
    $is_complete
    and (
        select count(distinct split) from numbered
        where split in ('id', 'ood')
    ) < 2;

-- name: judge_puzzle_likelihoods
-- The problem of each likelihood of a cell, NULL if it is valid. find_problem reads the first.
-- Input: puzzle_likelihoods_to_land (PUZZLE_LIKELIHOODS). Parameters: model, revision, puzzle,
-- protocol, num_items.
create or replace temp table judged_rows as
with numbered as (
    select
        *,
        row_number() over () as row_number,
        count(*) over (partition by split, item) as num_same
    from puzzle_likelihoods_to_land
)

select
    row_number,
    case
        when model <> $model then ['model', model, $model]
        when revision <> $revision then ['revision', revision, $revision]
        when puzzle <> $puzzle then ['puzzle', puzzle, $puzzle]
        when protocol <> $protocol then ['protocol', protocol, $protocol]
        when split not in ('id', 'ood', 'ood_near')
            then ['split', split, 'id, ood or ood_near']
        when item not between 0 and $num_items - 1 or num_same > 1
            then ['item', split || ' ' || item, '0 to ' || ($num_items - 1) || ', each once']
        when (token_nats is null) = (reason is null)
            then ['reason', reason, 'a reason where token_nats is NULL, and only there']
        when token_nats is not null and len(token_nats) = 0
            then ['token_nats', '[]', 'one number a token, or NULL with a reason']
        when list_min(token_nats) < 0 or not isfinite(list_sum(token_nats))
            then ['token_nats', cast(token_nats as varchar), 'finite numbers of 0 or more']
    end as problem
from numbered;

---------- Replace a cell

-- name: delete_puzzle_cells
-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_cells
where model = $model and puzzle = $puzzle and protocol = $protocol;

-- name: insert_puzzle_cells
-- Insert the record of a cell. Input: puzzle_to_land, its row of scylla_cells.
insert into internal.scylla_cells by name
select * from puzzle_to_land;

-- name: delete_puzzle_answers
-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_answers
where model = $model and puzzle = $puzzle and protocol = $protocol;

-- name: insert_puzzle_answers
-- Insert the answers to a cell's items. Input: puzzle_answers_to_land (PUZZLE_ANSWERS).
insert into internal.scylla_answers by name
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
from puzzle_answers_to_land;

-- name: delete_puzzle_steps
-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_steps
where model = $model and puzzle = $puzzle and protocol = $protocol;

-- name: insert_puzzle_steps
-- Insert the number of steps of a cell's items, if its puzzle has steps: a probe whose input ends
-- with k. Input: puzzle_answers_to_land (PUZZLE_ANSWERS); puzzle_to_land, the row of scylla_cells.
insert into internal.scylla_steps by name
select
    answers.model,
    answers.puzzle,
    answers.protocol,
    answers.split,
    answers.item,
    cast(
        regexp_extract(answers.input, '\$k\$ = ([0-9]{1,9})$', 1) as integer
    ) as steps
from puzzle_answers_to_land as answers
inner join puzzle_to_land as cells
    on answers.puzzle = cells.puzzle
where cells.level is null and regexp_matches(answers.input, '\$k\$ = [0-9]{1,9}$');

-- name: delete_puzzle_replicates
-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_replicates
where model = $model and puzzle = $puzzle and protocol = $protocol;

-- name: insert_puzzle_replicates
-- Land the bootstrap replicates of a cell. Input: puzzle_replicates_to_land.
insert into internal.scylla_replicates by name
select * from puzzle_replicates_to_land;

-- name: name_puzzled_models
-- Give every model with puzzles a row in its dimension; else joins would drop the model.
insert into models (model)
select distinct cells.model
from internal.scylla_cells as cells
anti join models as named on cells.model = named.model;

---------- Replace likelihoods

-- name: delete_puzzle_likelihoods
-- Delete the rows that a cell replaces. Parameters: model, puzzle, protocol.
delete from internal.scylla_likelihoods
where model = $model and puzzle = $puzzle and protocol = $protocol;

-- name: insert_puzzle_likelihoods
-- Insert the likelihoods of a cell. Input: puzzle_likelihoods_to_land (PUZZLE_LIKELIHOODS).
-- Parameters: level, complexity, digest.
insert into internal.scylla_likelihoods by name
select
    model,
    puzzle,
    protocol,
    split,
    item,
    cast($level as integer) as level,
    cast($complexity as varchar) as complexity,
    token_nats,
    prompt_nats,
    prompt_tokens,
    reason,
    $digest as answers_digest
from puzzle_likelihoods_to_land;

-- name: name_measured_models
-- Give every model with likelihoods a row in its dimension; else joins would drop the model.
insert into models (model)
select distinct measured.model
from internal.scylla_likelihoods as measured
anti join models as named on measured.model = named.model;
