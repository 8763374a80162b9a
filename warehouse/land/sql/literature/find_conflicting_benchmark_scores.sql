-- The first staged score that differs from the loaded score with the same key. A NULL in the file
-- is no difference.
select
    given.model,
    given.benchmark,
    given.score,
    loaded.score as loaded_score,
    given.reference,
    loaded.reference as loaded_reference,
    given.as_of,
    loaded.as_of as loaded_as_of,
    given.ability,
    loaded.ability as loaded_ability
from staged_benchmark_scores as given
inner join internal.benchmark_scores as loaded
    on given.model = loaded.model and given.benchmark = loaded.benchmark
where
    given.score <> loaded.score
    or given.reference <> loaded.reference
    or given.as_of <> loaded.as_of
    or given.ability <> loaded.ability
order by given.row_number
limit 1;
