-- Whether two months are compared already, with just these contents, by this computation.
select 1
from text_comparisons
where
    source = $source
    and month = cast($month as date)
    and other_month = cast($other_month as date)
    and version = $version
    and partition_digest = $partition_digest
    and other_partition_digest = $other_partition_digest;
