-- The first staged rating that differs from the loaded rating with the same key. A NULL in the
-- file is no difference.
select
    given.puzzle,
    given.complexity,
    given.rating,
    loaded.rating as loaded_rating,
    given.num_raters,
    loaded.num_raters as loaded_num_raters,
    given.reference,
    loaded.reference as loaded_reference
from staged_human_difficulty as given
inner join internal.human_difficulty as loaded
    on given.puzzle = loaded.puzzle and given.complexity = loaded.complexity
where
    given.rating <> loaded.rating
    or given.num_raters <> loaded.num_raters
    or given.reference <> loaded.reference
order by given.row_number
limit 1;
