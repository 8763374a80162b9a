-- The problem of each staged score, NULL if the score is valid. find_problem reads the first.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        min(row_number) over (partition by model, benchmark) as first_row_number
    from staged_benchmark_scores
)

select
    row_number,
    case
        when model is null then ['model', null, 'the name of a model']
        when benchmark is null then ['benchmark', null, 'the name of a benchmark']
        when score is null or not isfinite(score) or abs(score) > 1e9
            then ['score', given_score, 'a number within a billion, without a percent sign']
        when given_as_of is not null and as_of is null
            then ['as_of', given_as_of, 'YYYY-MM or YYYY-MM-DD, or nothing']
        when row_number > first_row_number
            then [
                'model, benchmark',
                concat_ws(', ', model, benchmark),
                'one row for each; row ' || first_row_number || ' is of the same'
            ]
    end as problem
from checked;
