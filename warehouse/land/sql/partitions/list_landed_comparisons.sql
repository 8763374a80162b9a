-- The landed comparisons of two months, with the contents' digests and the computation's version.
select
    source,
    month,
    other_month,
    version,
    partition_digest,
    other_partition_digest
from internal.text_comparisons;
