-- Figures printed in the tables of papers, one per row, for look-up and manual comparison.
-- Grain: one row per reference, printed_table, printed_model, row_key, column_name.
-- Units: see column unit. unit_known is false if the paper states no unit, or a wrong unit: no view
--   and no report may compare such a figure with tidemark's figures.
-- model is the name in table models, by warehouse/reference/names/published_models.csv.
-- Source: warehouse/reference/*.csv, read again whenever the database is opened for writing.
create table if not exists published_figures (
    reference varchar not null,
    printed_table varchar not null,
    model varchar,
    row_key varchar,
    column_name varchar not null,
    value double,
    printed varchar not null,
    unit varchar,
    unit_known boolean not null,
    printed_model varchar
);

-- For databases of before this column: `model` was the printed name. The rows are written again.
alter table published_figures add column if not exists printed_model varchar;
