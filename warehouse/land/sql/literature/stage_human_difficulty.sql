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
