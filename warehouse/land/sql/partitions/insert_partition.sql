-- Record the landed version of one partition.
insert into internal.landed_partitions
values (
    $source, cast($month as date), $partition_digest, $partition_version, $num_documents,
    $num_bytes, $regime
);
