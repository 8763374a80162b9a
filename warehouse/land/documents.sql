-- Landing of the documents of a partition, without texts. In: documents_to_land. Out: documents and
-- partitions have what the partition's present version has; no row of a former version is left.

---------- Read what has landed

-- name: list_landed_partitions
-- The landed partitions with their digests.
select
    source,
    month,
    partition_digest
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

-- name: date_documents
-- The documents of one partition with their dates. Imported records have their date in extra.
-- Input: documents_to_land, Arrow data of schema DOCUMENTS without the text; event_time in UTC.
create or replace temp table dated_documents as
select
    * exclude (event_time, extra),
    coalesce(
        cast(event_time as date),
        try_cast(
            nullif(regexp_extract(extra, '"date": "(\d{4}-\d{2}-\d{2})', 1), '') as date
        )
    ) as event_date
from documents_to_land;

-- name: read_partition
-- Define incoming losses as the landed losses of one partition, whose documents have changed.
create or replace temp view incoming as
select losses.*
from chunk_losses as losses
inner join partition_to_read as wanted
    on losses.source = wanted.source and losses.month is not distinct from wanted.month;
