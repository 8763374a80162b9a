-- Cells scored by tidemark with fewer documents than their partition, under a protocol that covers
-- whole documents.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with covering as (
    select protocol
    from protocols
    where
        json_extract_string(definition, '$.layout') in ('disjoint', 'sliding', 'rolling')
        and json_extract_string(definition, '$.max_chars') is null
        and json_extract_string(definition, '$.joined_by') is null
)

select
    cells.model,
    cells.source,
    cells.month,
    cells.protocol,
    cells.num_documents as num_documents_scored,
    p.num_documents as num_documents_of_partition
from internal.landed_cells as cells
semi join covering on cells.protocol = covering.protocol
inner join internal.landed_partitions as p
    on
        cells.source = p.source
        and cells.month is not distinct from p.month
        and cells.partition_digest = p.partition_digest
where cells.num_documents < p.num_documents
order by cells.model, cells.source, cells.month, cells.protocol;
