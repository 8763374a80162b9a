-- Record which version of one partition is landed.
insert into landed_partitions
values (
    $source, cast($month as date), $partition_digest, $partition_version, $num_documents, $num_bytes
);
