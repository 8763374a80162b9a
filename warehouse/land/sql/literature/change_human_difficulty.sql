-- The staged ratings that differ from the loaded ones. A NULL in a row keeps the loaded value.
create or replace temp table changed_human_difficulty as
with wanted as (
    select
        given.puzzle,
        given.complexity,
        given.rating,
        coalesce(given.num_raters, loaded.num_raters) as num_raters,
        coalesce(given.reference, loaded.reference) as reference
    from staged_human_difficulty as given
    left join internal.human_difficulty as loaded
        on given.puzzle = loaded.puzzle and given.complexity = loaded.complexity
)

select *
from wanted
anti join internal.human_difficulty as loaded
    on
        wanted.puzzle = loaded.puzzle
        and wanted.complexity = loaded.complexity
        and wanted.rating = loaded.rating
        and wanted.num_raters is not distinct from loaded.num_raters
        and wanted.reference is not distinct from loaded.reference;
