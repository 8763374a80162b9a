-- Make published_figures what the files say; where it is that already, nothing is written.
-- Input: figures_to_load, Arrow data of reference/*.csv, all of it text.
merge into published_figures as landed
using (
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
    from figures_to_load
) as given
    on
        landed.reference = given.reference
        and landed.printed_table = given.printed_table
        and landed.model is not distinct from given.model
        and landed.row_key is not distinct from given.row_key
        and landed.column_name = given.column_name
        and landed.printed = given.printed
        and landed.unit is not distinct from given.unit
        and landed.unit_known = given.unit_known
when not matched by target then insert by name
when not matched by source then delete;
