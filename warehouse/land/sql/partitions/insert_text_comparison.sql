-- Insert the result of comparing two months.
insert into internal.text_comparisons (
    source, month, other_month, method, version, num_documents, num_bytes, difference, reason,
    partition_digest, other_partition_digest
)
values (
    $source, cast($month as date), cast($other_month as date), $method, $version,
    $num_documents, $num_bytes, $difference, $reason, $partition_digest, $other_partition_digest
);
