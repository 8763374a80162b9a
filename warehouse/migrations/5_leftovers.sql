-- Databases up to November 2026 stated why a document was taken down, and so did their snapshots.
alter table if exists main.forgotten_documents drop column if exists why;
alter table if exists internal.forgotten_documents drop column if exists why;

-- Databases up to November 2026 had the files duplicate_of.parquet in a table without a reader.
drop table if exists main.duplicate_of;
drop table if exists internal.duplicate_of;
