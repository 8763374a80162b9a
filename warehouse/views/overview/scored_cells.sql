-- The months of each source that each model has scored.
-- Grain: one row per model, source, protocol, month. Undated text is left out.
-- Units: counts. is_outdated: scored on an older version of the text than the landed one; scoring
--   again updates it. drift and drifted_at: the canary drifted around the scoring, so that the
--   losses may be wrong (internal.suspect_cells); NULL for other cells.
-- Source: reads landed_cells, landed_partitions, suspect_cells.
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
    ) as is_outdated,
    s.drifted_at,
    s.drift
from internal.landed_cells as c
left join internal.landed_partitions as p on c.source = p.source and c.month = p.month
left join internal.suspect_cells as s
    on
        c.model = s.model
        and c.source = s.source
        and c.protocol = s.protocol
        and c.month = s.month
where c.month is not null;
