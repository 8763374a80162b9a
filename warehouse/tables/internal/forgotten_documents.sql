-- Documents that were taken down.
-- Their other rows are deleted; this table is the record. The reason is in the tombstone alone.
-- Grain: one row per document_id.
create table if not exists internal.forgotten_documents (
    document_id varchar not null,
    forgotten_at timestamp not null
);
