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
