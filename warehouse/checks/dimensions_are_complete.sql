-- Models, sources or protocols of cells that are missing in their dimension tables: joins would
-- drop the cells.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
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
