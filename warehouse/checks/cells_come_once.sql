-- Cells, partitions or records with more than one row: loaded twice, or one cell with two revisions
-- of a model.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with keys as (
    select
        'landed_cells' as found_in,
        model,
        source,
        month,
        protocol
    from internal.landed_cells
    union all
    select
        'cell_costs' as found_in,
        model,
        source,
        month,
        protocol
    from cell_costs
    union all
    select
        'landed_partitions' as found_in,
        null as model,
        source,
        month,
        null as protocol
    from internal.landed_partitions
)

select
    found_in,
    model,
    source,
    month,
    protocol,
    count(*) as num_rows
from keys
group by found_in, model, source, month, protocol
having count(*) > 1
order by found_in, model, source, month, protocol;
