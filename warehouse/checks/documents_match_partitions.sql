-- Partitions whose number of documents is not that of their rows, and documents without one.
with counts as (
    select
        source,
        month,
        count(*) as num_documents
    from documents
    group by source, month
)

select
    coalesce(p.source, counts.source) as source,
    coalesce(p.month, counts.month) as month,
    p.num_documents as num_documents_recorded,
    counts.num_documents as num_documents_landed
from landed_partitions as p
full outer join counts
    on
        p.source = counts.source
        and p.month is not distinct from counts.month
where coalesce(p.num_documents, 0) <> coalesce(counts.num_documents, 0);
