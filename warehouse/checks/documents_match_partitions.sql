-- Partitions whose number of documents or bytes differs from their rows in table documents, and
-- documents without a partition.
-- Do: Run `tidemark rebuild`: it makes the database again from the cells, and replaces the old one
--   only if nothing is missing.
with counts as (
    select
        source,
        month,
        count(*) as num_documents,
        sum(num_bytes) as num_bytes
    from documents
    group by source, month
)

select
    coalesce(p.source, counts.source) as source,
    coalesce(p.month, counts.month) as month,
    p.num_documents as num_documents_recorded,
    counts.num_documents as num_documents_landed,
    p.num_bytes as num_bytes_recorded,
    counts.num_bytes as num_bytes_landed
from internal.landed_partitions as p
full outer join counts
    on
        p.source = counts.source
        and p.month is not distinct from counts.month
where
    coalesce(p.num_documents, 0) <> coalesce(counts.num_documents, 0)
    or coalesce(p.num_bytes, 0) <> coalesce(counts.num_bytes, 0);
