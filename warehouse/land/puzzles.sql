-- Landing of answers to puzzles, their sums, bootstrap replicates, and likelihoods.
-- In: the rows of one cell. Out: each cell of the tables puzzle_* is the present one, once.

---------- Check

-- name: find_problem
-- The first judged row with a problem: row number, column, content and expected content.
-- Input: judged_rows; its column problem has the column, its content and the expected content.
select
    row_number,
    problem[1] as column_name,
    left(problem[2], 100) as given,
    problem[3] as expected
from judged_rows
where problem is not null
order by row_number
limit 1;

-- name: judge_puzzle_rows
-- The problem of each answer or likelihood of a cell, if it is of another cell or item; else NULL.
-- Input: puzzle_rows_to_land (PUZZLE_ANSWERS or PUZZLE_LIKELIHOODS). Parameters: model, revision,
-- puzzle, protocol, num_items.
create or replace temp table judged_rows as
with numbered as (
    select
        *,
        row_number() over () as row_number,
        count(*) over (partition by split, item) as num_same
    from puzzle_rows_to_land
)

select
    *,
    case
        when model <> $model then ['model', model, $model]
        when revision <> $revision then ['revision', revision, $revision]
        when puzzle <> $puzzle then ['puzzle', puzzle, $puzzle]
        when protocol <> $protocol then ['protocol', protocol, $protocol]
        when split not in ('id', 'ood', 'ood_near')
            then ['split', split, 'id, ood or ood_near']
        when item not between 0 and $num_items - 1 or num_same > 1
            then ['item', split || ' ' || item, '0 to ' || ($num_items - 1) || ', each once']
    end as problem
from numbered;

-- name: judge_puzzle_answers
-- The problem of each judged row, also as an answer. Parameters: num_items, is_complete. Row 0: a
-- whole split is missing.
create or replace temp table judged_rows as
with counted as (
    select
        *,
        count(*) over (partition by split) as num_in_split
    from judged_rows
)

select
    row_number,
    case
        when problem is not null then problem
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
from counted
union all
select
    0 as row_number,
    ['split', 'not of both kinds', 'rows of id and rows of ood'] as problem
from counted
having $is_complete and count(distinct split) filter (where split in ('id', 'ood')) < 2;

-- name: judge_puzzle_likelihoods
-- The problem of each judged row, also as a likelihood.
create or replace temp table judged_rows as
select
    row_number,
    case
        when problem is not null then problem
        when (token_nats is null) = (reason is null)
            then ['reason', reason, 'a reason where token_nats is NULL, and only there']
        when token_nats is not null and len(token_nats) = 0
            then ['token_nats', '[]', 'one number a token, or NULL with a reason']
        when list_min(token_nats) < 0 or not isfinite(list_sum(token_nats))
            then ['token_nats', cast(token_nats as varchar), 'finite numbers of 0 or more']
    end as problem
from judged_rows;

---------- Replace a cell

-- name: count_puzzle_steps
-- The number of steps of a cell's items, if its puzzle has steps: a probe whose input ends with k.
-- Input: puzzle_rows_to_land (PUZZLE_ANSWERS); puzzle_to_land, the row of scylla_cells.
create or replace temp table puzzle_steps as
select
    answers.model,
    answers.puzzle,
    answers.protocol,
    answers.split,
    answers.item,
    cast(
        regexp_extract(answers.input, '\$k\$ = ([0-9]{1,9})$', 1) as integer
    ) as steps
from puzzle_rows_to_land as answers
inner join puzzle_to_land as cells
    on answers.puzzle = cells.puzzle
where cells.level is null and regexp_matches(answers.input, '\$k\$ = [0-9]{1,9}$');
