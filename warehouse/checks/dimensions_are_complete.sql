-- Models, sources or protocols of cells that are missing in their dimension tables: joins would
-- drop the cells.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: it lands
--   existing losses without scoring. Also land imported files again.
with names as (
    select
        'models' as missing_from,
        model as name
    from internal.landed_cells
    anti join models on landed_cells.model = models.model
    union
    select
        'sources' as missing_from,
        source as name
    from internal.landed_cells
    anti join sources on landed_cells.source = sources.source
    union
    select
        'protocols' as missing_from,
        protocol as name
    from internal.landed_cells
    anti join protocols on landed_cells.protocol = protocols.protocol
)

select *
from names
order by missing_from, name;
