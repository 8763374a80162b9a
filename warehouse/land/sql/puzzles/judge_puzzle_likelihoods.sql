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
            then ['token_nats', token_nats::varchar, 'finite numbers of 0 or more']
    end as problem
from numbered;
