-- Databases of versions up to 0.1.0 do not say which tidemark made them, and those up to November
-- 2026 have no digest of columns. Former versions ignore both, so the schema version stays.
alter table internal.schema_version add column if not exists tidemark varchar;
alter table internal.schema_version add column if not exists catalogue varchar;
