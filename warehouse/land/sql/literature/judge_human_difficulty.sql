-- The problem of each staged rating, NULL if the rating is valid. find_problem reads the first.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        min(row_number) over (partition by puzzle, complexity) as first_row_number
    from staged_human_difficulty
)

select
    row_number,
    case
        when not coalesce(is_puzzle, false) then ['puzzle', puzzle, 'the name of a puzzle']
        when complexity is null or complexity <> expected_complexity
            then ['complexity', complexity, expected_complexity || ', as of this puzzle']
        when rating is null or not isfinite(rating) then ['rating', given_rating, 'a number']
        when given_num_raters is not null and coalesce(num_raters, 0) < 1
            then ['num_raters', given_num_raters, 'a number of people, or nothing']
        when row_number > first_row_number
            then [
                'puzzle, complexity',
                concat_ws(', ', puzzle, complexity),
                'one row for each; row ' || first_row_number || ' is of the same'
            ]
    end as problem
from checked;
