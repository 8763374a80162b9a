-- The landed partitions with their digests, and true if they have landed duplicates.
select
    source,
    month,
    partition_digest,
    (source, month) in (select (source, month) from internal.duplicate_of) as has_duplicates
from internal.landed_partitions;
