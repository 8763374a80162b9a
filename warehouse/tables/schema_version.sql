-- The version of the tables in this file; migrations go by it. definitions: a digest of the files
-- that the objects were made from, so that views are made anew only when one has changed.
-- Grain: one row.
create table if not exists schema_version as
select
    cast(2 as integer) as version,
    cast(null as varchar) as definitions;
