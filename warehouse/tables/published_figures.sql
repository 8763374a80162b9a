-- What papers print in their tables, figure by figure, to look up and to compare with by hand.
-- Grain: one row per reference, printed_table, model, row_key, column_name.
-- Units: as column unit says. unit_known is false where the paper does not say what unit a figure
--   is in (or says it wrongly): no view and no report may put such a figure beside ours.
-- Source: reference/*.csv of this room, taken over anew whenever the database is opened to write.
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
