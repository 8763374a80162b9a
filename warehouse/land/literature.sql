-- Landing of what others have published: rates, benchmark scores, ratings of difficulty, figures.
-- In: rows_to_land, texts of a file; figures_to_load, of warehouse/reference.
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

-- name: stage_published_rates
-- Stage published rates: the file's texts, and their parsed values (NULL if a text is invalid).
-- Input: rows_to_land, Arrow data of texts. Parameters: reference, is_percent.
create or replace temp table staged_published_rates as
select
    row_number,
    nullif(trim(model), '') as model,
    nullif(trim(source), '') as source,
    month as given_month,
    cast(
        date_trunc(
            'month',
            try_cast(
                case
                    when regexp_full_match(trim(month), '\d{4}-\d{2}') then trim(month) || '-01'
                    when regexp_full_match(trim(month), '\d{4}-\d{2}-\d{2}') then trim(month)
                end as date
            )
        ) as date
    ) as month,
    compression_rate as given_rate,
    try_cast(compression_rate as double) / case when $is_percent then 100 else 1 end
        as compression_rate,
    cast($is_percent as boolean) as is_percent,
    num_bytes as given_bytes,
    try_cast(num_bytes as bigint) as num_bytes,
    is_text as given_is_text,
    try_cast(is_text as boolean) as is_text,
    coalesce(nullif(trim(reference), ''), $reference) as reference
from rows_to_land;

-- name: judge_published_rates
-- The problem of each staged rate, NULL if the rate is valid. find_problem reads the first.
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
        when month is null or year(month) not between 1 and 9999
            then ['month', given_month, 'YYYY-MM or YYYY-MM-DD, such as 2024-03']
        when
            compression_rate is null
            or not isfinite(compression_rate)
            or compression_rate < 1e-9
            then ['compression_rate', given_rate, 'a number above 0, without a percent sign']
        when is_percent and compression_rate > 3
            then ['compression_rate', given_rate, 'a percentage of at most 300']
        when is_percent and max_rate <= 0.03
            then [
                'compression_rate',
                given_rate,
                'a percentage such as 7.8, as --percent says. No rate of the file is above 3: '
                || 'if they are fractions, leave --percent out'
            ]
        when compression_rate > 3
            then [
                'compression_rate',
                given_rate,
                'compressed size / raw size as a fraction such as 0.078, at most 3. If the '
                || 'file holds percentages, say --percent'
            ]
        when given_bytes is not null and coalesce(num_bytes, 0) <= 0
            then ['num_bytes', given_bytes, 'a whole number above 0, or nothing']
        when given_is_text is not null and is_text is null
            then ['is_text', given_is_text, 'true, false, or nothing for true']
    end as problem
from checked;

---------- Benchmark scores

-- name: stage_benchmark_scores
-- Stage scores: the file's texts, and their parsed values (NULL if a text is invalid).
-- Input: rows_to_land, Arrow data of texts.
create or replace temp table staged_benchmark_scores as
select
    row_number,
    nullif(trim(model), '') as model,
    nullif(trim(benchmark), '') as benchmark,
    score as given_score,
    try_cast(score as double) as score,
    nullif(trim(reference), '') as reference,
    nullif(trim(ability), '') as ability,
    as_of as given_as_of,
    try_cast(
        case
            when regexp_full_match(trim(as_of), '\d{4}-\d{2}') then trim(as_of) || '-01'
            when regexp_full_match(trim(as_of), '\d{4}-\d{2}-\d{2}') then trim(as_of)
        end as date
    ) as as_of
from rows_to_land;

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

-- name: stage_human_difficulty
-- Stage ratings: the file's texts, and their parsed values (NULL if a text is invalid).
-- Input: rows_to_land, Arrow data of texts. Parameter: puzzles, a map from puzzle to complexity.
create or replace temp table staged_human_difficulty as
select
    row_number,
    nullif(trim(puzzle), '') as puzzle,
    nullif(trim(complexity), '') as complexity,
    list_contains(map_keys($puzzles), trim(puzzle)) as is_puzzle,
    $puzzles[trim(puzzle)] as expected_complexity,
    rating as given_rating,
    try_cast(rating as double) as rating,
    num_raters as given_num_raters,
    try_cast(num_raters as integer) as num_raters,
    nullif(trim(reference), '') as reference
from rows_to_land;

-- name: judge_human_difficulty
-- The problem of each staged rating, NULL if the rating is valid. find_problem reads the first.
create or replace temp table judged_rows as
select
    row_number,
    case
        when not coalesce(is_puzzle, false) then ['puzzle', puzzle, 'the name of a puzzle']
        when complexity is null or complexity <> expected_complexity
            then ['complexity', complexity, expected_complexity || ', as of this puzzle']
        when rating is null or not isfinite(rating) then ['rating', given_rating, 'a number']
        when given_num_raters is not null and coalesce(num_raters, 0) < 1
            then ['num_raters', given_num_raters, 'a number of people, or nothing']
    end as problem
from staged_human_difficulty;

---------- Printed figures

-- name: stage_published_figures
-- Stage the figures of the reference files.
-- Input: figures_to_load, Arrow data of reference/*.csv as texts.
create or replace temp table staged_published_figures as
select
    reference,
    printed_table,
    nullif(model, '') as model,
    nullif(row_key, '') as row_key,
    column_name,
    try_cast(value as double) as value,
    value as printed,
    nullif(unit, '') as unit,
    cast(unit_known as boolean) as unit_known
from figures_to_load;
