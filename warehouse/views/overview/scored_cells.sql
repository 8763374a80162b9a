-- The months of each source that each model has scored.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Units: counts. is_outdated: scored on an older version of the text than the landed one; scoring
--   again updates it.
-- Source: reads landed_cells, landed_partitions.
create or replace view scored_cells as
select
    c.model,
    c.source,
    c.protocol,
    c.month,
    c.num_documents,
    c.num_unmeasured,
    coalesce(
        c.partition_digest <> p.partition_digest
        and coalesce(c.partition_version, 0) < p.partition_version,
        false
    ) as is_outdated
from internal.landed_cells as c
left join internal.landed_partitions as p on c.source = p.source and c.month = p.month
where c.month is not null;
