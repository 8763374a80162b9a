-- Stage the figures of the reference files.
-- Input: figures_to_load, Arrow data of reference/*.csv as texts.
create or replace temp table staged_published_figures as
select
    reference,
    printed_table,
    nullif(model, '') as model,
    nullif(row_key, '') as row_key,
    column_name,
    try_cast(value as double) as value,
    value as printed,
    nullif(unit, '') as unit,
    cast(unit_known as boolean) as unit_known
from figures_to_load;
