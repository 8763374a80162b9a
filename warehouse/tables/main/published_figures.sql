-- Figures printed in the tables of papers, one per row, for look-up and manual comparison.
-- Grain: one row per reference, printed_table, model, row_key, column_name.
-- Units: see column unit. unit_known is false if the paper states no unit for a figure, or a wrong
--   one: no view and no report may compare such a figure with tidemark's.
-- Source: warehouse/reference/*.csv, read again whenever the database is opened for writing.
create table if not exists published_figures (
    reference varchar not null,
    printed_table varchar not null,
    model varchar, -- as printed; NULL where the row is not of a model
    row_key varchar, -- what else tells the row: a data set, a benchmark, a context size, a month
    column_name varchar not null,
    value double, -- NULL where what is printed is a month or a category
    printed varchar not null, -- with the digits that are printed
    unit varchar, -- NULL where it is not known
    unit_known boolean not null
);
