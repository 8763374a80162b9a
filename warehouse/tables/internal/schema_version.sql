-- The schema version of this database, for migrations. definitions: a digest of all files that
-- define objects; views are created again only if the digest has changed.
-- tidemark: the version of tidemark that last created the objects.
-- catalogue: a digest of the columns of all tables and views at that time.
-- Grain: one row.
create table if not exists internal.schema_version as
select
    cast(2 as integer) as version,
    cast(null as varchar) as definitions,
    cast(null as varchar) as tidemark,
    cast(null as varchar) as catalogue;

-- For databases of before these columns. Former versions ignore both.
alter table internal.schema_version add column if not exists tidemark varchar;
alter table internal.schema_version add column if not exists catalogue varchar;
