-- Counts of the cells of each model, source and protocol, and of the partitions' documents they
--   cover.
-- Grain: one row per model, source, protocol.
-- Units: counts. num_missing_months are unscored months (or other periods of the
--   source) between the first and the last.
--   num_documents_of_partitions is NULL if none of these partitions is landed, num_lossy_documents
--   if no cell has a cost record. Under protocol solid, a cell has one row for all documents of its
--   partition. num_outdated_cells were scored on an older version of the text than the landed
--   version; scoring again updates them.
-- Source: reads landed_cells, landed_partitions, cell_costs, suspect_cells.
create or replace view coverage as
with cells as (
    select
        c.model,
        c.source,
        c.protocol,
        min(c.month) as first_month,
        max(c.month) as last_month,
        count(c.month) as num_months,
        bool_or(c.month is null) as has_undated,
        cast(
            sum(
                coalesce(case when c.protocol = 'solid' then p.num_documents end, c.num_documents)
            ) as bigint
        ) as num_documents,
        cast(sum(p.num_documents) as bigint) as num_documents_of_partitions,
        cast(sum(c.num_chunks) as bigint) as num_chunks,
        cast(sum(c.num_unmeasured) as bigint) as num_unmeasured,
        cast(sum(costs.num_lossy_documents) as bigint) as num_lossy_documents,
        count(suspect.model) as num_suspect_cells,
        count(*) filter (
            where
            c.partition_digest <> p.partition_digest
            and coalesce(c.partition_version, 0) < p.partition_version
        ) as num_outdated_cells
    from internal.landed_cells as c
    left join internal.landed_partitions as p
        on c.source = p.source and c.month is not distinct from p.month
    left join cell_costs as costs
        on
            c.model = costs.model
            and c.source = costs.source
            and c.month is not distinct from costs.month
            and c.protocol = costs.protocol
    left join internal.suspect_cells as suspect
        on
            c.model = suspect.model
            and c.source = suspect.source
            and c.month is not distinct from suspect.month
            and c.protocol = suspect.protocol
    group by c.model, c.source, c.protocol
)

select
    model,
    source,
    protocol,
    first_month,
    last_month,
    num_months,
    periods_between(source, first_month, last_month) - num_months as num_missing_months,
    has_undated,
    num_documents,
    num_documents_of_partitions,
    num_chunks,
    num_unmeasured,
    num_lossy_documents,
    num_suspect_cells,
    num_outdated_cells
from cells;
