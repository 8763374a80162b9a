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
