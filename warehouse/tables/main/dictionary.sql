-- What public tables, views, macros and their columns are: their comments, as rows.
-- Grain: one row per name and column_name; column_name is NULL in the row of the object itself.
-- Source: the files that the objects are made from.
create table if not exists dictionary (
    name varchar not null,
    kind varchar not null,
    column_name varchar,
    meaning varchar not null,
    unit varchar,
    parameters varchar
);
