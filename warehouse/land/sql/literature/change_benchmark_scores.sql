-- The staged scores that differ from the loaded ones. A NULL in a row keeps the loaded value.
create or replace temp table changed_benchmark_scores as
with wanted as (
    select
        given.model,
        given.benchmark,
        given.score,
        coalesce(given.reference, loaded.reference) as reference,
        coalesce(given.as_of, loaded.as_of) as as_of,
        coalesce(given.ability, loaded.ability) as ability
    from staged_benchmark_scores as given
    left join internal.benchmark_scores as loaded
        on given.model = loaded.model and given.benchmark = loaded.benchmark
)

select *
from wanted
anti join internal.benchmark_scores as loaded
    on
        wanted.model = loaded.model
        and wanted.benchmark = loaded.benchmark
        and wanted.score = loaded.score
        and wanted.reference is not distinct from loaded.reference
        and wanted.as_of is not distinct from loaded.as_of
        and wanted.ability is not distinct from loaded.ability;
