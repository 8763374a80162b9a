-- The version of the tables in this file; migrations go by it.
-- Grain: one row.
create table if not exists schema_version as
select cast(1 as integer) as version;
