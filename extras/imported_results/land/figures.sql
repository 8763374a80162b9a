-- Landing of what others have published: rates, benchmark scores, ratings of difficulty.
-- In: staged_<table>, the rows of a file.
-- Out: each table has one row per key. A landed value changes only with --replace.

---------- Any file: the first problem

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

---------- Monthly compression rates

-- name: judge_published_rates
-- The problem of each staged rate, NULL if the rate is valid. find_problem reads the first.
-- Parameter: is_percent, whether the rates are percentages.
-- A fraction above 3 is refused: the largest published fraction (a text model on audio) is 2.1, the
-- smallest percentage 3.5. So confusing fractions with percentages is detected in both directions.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        max(compression_rate) over () as max_rate
    from staged_published_rates
)

select
    row_number,
    case
        when model is null then ['model', null, 'the name of a model']
        when source is null then ['source', null, 'the name of a source']
        when month is null
            then ['month', given_month, 'YYYY-MM or YYYY-MM-DD from 1900 on, such as 2024-03']
        when coalesce(compression_rate < 1e-9 or not isfinite(compression_rate), true)
            then [
                'compression_rate',
                given_compression_rate,
                'a number above 0, without a percent sign'
            ]
        when $is_percent and compression_rate > 300
            then ['compression_rate', given_compression_rate, 'a percentage of at most 300']
        when $is_percent and max_rate <= 3
            then [
                'compression_rate',
                given_compression_rate,
                'a percentage such as 7.8, as --percent says. No rate of the file is above 3: '
                || 'if they are fractions, leave --percent out'
            ]
        when not $is_percent and compression_rate > 3
            then [
                'compression_rate',
                given_compression_rate,
                'compressed size / raw size as a fraction such as 0.078, at most 3. If the '
                || 'file holds percentages, say --percent'
            ]
        when given_num_bytes is not null and coalesce(num_bytes, 0) <= 0
            then ['num_bytes', given_num_bytes, 'a whole number above 0, or nothing']
        when given_is_text is not null and is_text is null
            then ['is_text', given_is_text, 'true, false, or nothing for true']
    end as problem
from checked;

-- name: divide_percentages
-- Make fractions of the staged percentages.
update staged_published_rates
set compression_rate = compression_rate / 100;

---------- Benchmark scores

-- name: judge_benchmark_scores
-- The problem of each staged score, NULL if the score is valid. find_problem reads the first.
create or replace temp table judged_rows as
select
    row_number,
    case
        when model is null then ['model', null, 'the name of a model']
        when benchmark is null then ['benchmark', null, 'the name of a benchmark']
        when score is null or not isfinite(score) or abs(score) > 1e9
            then ['score', given_score, 'a number within a billion, without a percent sign']
        when given_as_of is not null and as_of is null
            then ['as_of', given_as_of, 'YYYY-MM or YYYY-MM-DD, or nothing']
    end as problem
from staged_benchmark_scores;

---------- Ratings of difficulty

-- name: judge_human_difficulty
-- The problem of each staged rating, NULL if the rating is valid. find_problem reads the first.
-- Parameter: puzzles, a map from puzzle to complexity.
create or replace temp table judged_rows as
with checked as (
    select
        *,
        map_extract_value($puzzles, puzzle) as expected
    from staged_human_difficulty
)

select
    row_number,
    case
        when expected is null then ['puzzle', puzzle, 'the name of a puzzle']
        when (complexity is distinct from expected)
            then ['complexity', complexity, expected || ', as of this puzzle']
        when rating is null or not isfinite(rating) then ['rating', given_rating, 'a number']
        when given_num_raters is not null and coalesce(num_raters, 0) not between 1 and 2147483647
            then ['num_raters', given_num_raters, 'a number of people, or nothing']
    end as problem
from checked;
