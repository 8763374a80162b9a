-- Names of models, sources or protocols that cells or published rates have and their tables lack:
-- joins with these drop the figures.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
with figures as (
    select
        model,
        source,
        protocol
    from landed_cells
    union
    select
        model,
        source,
        'published' as protocol
    from published_rates
),

names as (
    select
        'models' as missing_from,
        model as name
    from figures
    anti join models on figures.model = models.model
    union
    select
        'sources' as missing_from,
        source as name
    from figures
    anti join sources on figures.source = sources.source
    union
    select
        'protocols' as missing_from,
        protocol as name
    from figures
    anti join protocols on figures.protocol = protocols.protocol
)

select *
from names
order by missing_from, name;
