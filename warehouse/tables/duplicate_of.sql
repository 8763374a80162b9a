-- Documents that duplicate one of an earlier month, as was found after both had been sealed.
-- Both stay. What was found before sealing was dropped, and is in no partition.
-- Grain: one row per source, month, document_id, duplicate_of_document_id.
create table if not exists duplicate_of (
    source varchar not null,
    month date not null, -- first day
    document_id varchar not null,
    duplicate_of_month date not null, -- an earlier one
    duplicate_of_document_id varchar not null,
    similarity float not null, -- Jaccard, estimated; 1 of the same text
    found_at timestamp not null -- UTC
);
