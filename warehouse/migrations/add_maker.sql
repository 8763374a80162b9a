-- Databases of versions up to 0.1.0 do not say which tidemark made them. Former versions ignore the
-- column, so the schema version stays.
alter table internal.schema_version add column if not exists tidemark varchar;
