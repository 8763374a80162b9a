-- Documents that duplicate a document of an earlier month, found after both were sealed.
-- Both documents stay. Duplicates found before sealing were dropped and are in no partition.
-- Grain: one row per source, month, document_id, duplicate_of_document_id.
create table if not exists internal.duplicate_of (
    source varchar not null,
    month date not null,
    document_id varchar not null,
    duplicate_of_month date not null,
    duplicate_of_document_id varchar not null,
    similarity float not null,
    found_at timestamp not null
);
