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
