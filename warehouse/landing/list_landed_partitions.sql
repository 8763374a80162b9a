-- The landed partitions with their digests, and whether duplicates are landed of them.
select
    source,
    month,
    partition_digest,
    (source, month) in (select (source, month) from duplicate_of) as has_duplicates
from landed_partitions;
