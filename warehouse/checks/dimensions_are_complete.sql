-- Names of models, sources or protocols that cells have and their tables lack: joins with these
-- drop the cells.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
with names as (
    select
        'models' as missing_from,
        model as name
    from landed_cells
    anti join models on landed_cells.model = models.model
    union
    select
        'sources' as missing_from,
        source as name
    from landed_cells
    anti join sources on landed_cells.source = sources.source
    union
    select
        'protocols' as missing_from,
        protocol as name
    from landed_cells
    anti join protocols on landed_cells.protocol = protocols.protocol
)

select *
from names
order by missing_from, name;
