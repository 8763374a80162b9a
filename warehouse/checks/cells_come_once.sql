-- Cells, partitions or records that are recorded more than once: a double load, or two revisions of
-- a model in one cell.
-- Do: Delete the writer's database (work/writer.duckdb) and run `tidemark score` again: what is
--   scored only lands. Land files from elsewhere again, too.
with keys as (
    select
        'landed_cells' as found_in,
        model,
        source,
        month,
        protocol
    from landed_cells
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
    from landed_partitions
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
