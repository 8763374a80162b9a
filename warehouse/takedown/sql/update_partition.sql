-- Recount the documents of one partition.
update internal.landed_partitions
set
    num_documents = counts.num_documents,
    num_bytes = counts.num_bytes
from (
    select
        count(*) as num_documents,
        cast(coalesce(sum(num_bytes), 0) as bigint) as num_bytes
    from documents
    where source = $source and month is not distinct from cast($month as date)
) as counts
where source = $source and month is not distinct from cast($month as date);
