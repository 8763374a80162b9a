-- Documents that were taken down.
-- What the database had of them is gone; this is the record.
-- Grain: one row per document_id.
create table if not exists forgotten_documents (
    document_id varchar not null,
    forgotten_at timestamp not null, -- UTC
    why varchar not null
);
