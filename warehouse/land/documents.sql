-- Landing of the documents of a partition, without texts, of duplicates found after sealing, and of
-- comparisons of texts. In: documents_to_land, duplicates_to_land. Out: documents, partitions and
-- duplicates have what the partition's present version has; no row of a former version is left.

---------- Read what has landed

-- name: list_landed_partitions
-- The landed partitions with their digests, and true if they have landed duplicates.
select
    source,
    month,
    partition_digest,
    (source, month) in (select (source, month) from internal.duplicate_of) as has_duplicates
from internal.landed_partitions;

-- name: find_partition
-- The digest and the regime of one landed partition. No row if its documents landed before table
-- documents had the site's ids: then they land again.
select
    partition_digest,
    regime
from internal.landed_partitions
where
    source = $source
    and month is not distinct from cast($month as date)
    and not exists (
        select 1
        from documents
        where
            source = $source
            and month is not distinct from cast($month as date)
            and native_id is null
    );

---------- Replace the documents of a partition

-- name: delete_documents
-- Delete the documents of one partition.
delete from documents
where source = $source and month is not distinct from cast($month as date);

-- name: insert_documents
-- Land the documents of one partition.
-- Input: documents_to_land, Arrow data of schema DOCUMENTS without the text; event_time in UTC.
-- Imported records have their date in extra.
insert into documents by name
select
    document_id,
    source,
    month,
    category,
    language,
    licence,
    cluster_id,
    num_chars,
    num_bytes,
    title,
    url,
    coalesce(
        cast(event_time as date),
        try_cast(
            nullif(regexp_extract(extra, '"date": "(\d{4}-\d{2}-\d{2})', 1), '') as date
        )
    ) as event_date,
    native_id
from documents_to_land;

-- name: delete_partition
-- Delete the record of one partition's landed version.
delete from internal.landed_partitions
where source = $source and month is not distinct from cast($month as date);

-- name: insert_partition
-- Record the landed version of one partition.
insert into internal.landed_partitions
values (
    $source, cast($month as date), $partition_digest, $partition_version, $num_documents,
    $num_bytes, $regime
);

-- name: read_partition
-- Define incoming losses as the landed losses of one partition, whose documents have changed.
create or replace temp view incoming as
select losses.*
from chunk_losses as losses
inner join partition_to_read as wanted
    on losses.source = wanted.source and losses.month is not distinct from wanted.month;

---------- Replace the duplicates of a partition

-- name: find_duplicates
-- The number of landed duplicates of one partition, and the number of given ones not landed.
-- Input: duplicates_to_land, Arrow data of schema DUPLICATES.
select
    (
        select count(*)
        from internal.duplicate_of
        where source = $source and month = cast($month as date)
    ) as num_landed,
    (
        select count(*)
        from duplicates_to_land as given
        anti join internal.duplicate_of as landed
            on
                given.source = landed.source
                and given.month = landed.month
                and given.document_id = landed.document_id
                and given.duplicate_of_document_id = landed.duplicate_of_document_id
    ) as num_new;

-- name: delete_duplicates
-- Delete the landed duplicates of one partition.
delete from internal.duplicate_of
where source = $source and month = cast($month as date);

-- name: insert_duplicates
-- Land the duplicates of one partition.
-- Input: duplicates_to_land, Arrow data of schema DUPLICATES, with found_at in UTC.
insert into internal.duplicate_of by name
select *
from duplicates_to_land;

---------- Comparisons of texts

-- name: list_landed_comparisons
-- The landed comparisons of two months, with the contents' digests and the computation's version.
select
    source,
    month,
    other_month,
    version,
    partition_digest,
    other_partition_digest
from internal.text_comparisons;

-- name: delete_text_comparison
-- Delete the result of comparing two months.
delete from internal.text_comparisons
where
    source = $source
    and month = cast($month as date)
    and other_month = cast($other_month as date);

-- name: insert_text_comparison
-- Insert the result of comparing two months.
insert into internal.text_comparisons (
    source, month, other_month, method, version, num_documents, num_bytes, difference, reason,
    partition_digest, other_partition_digest
)
values (
    $source, cast($month as date), cast($other_month as date), $method, $version,
    $num_documents, $num_bytes, $difference, $reason, $partition_digest, $other_partition_digest
);
