-- Delete published figures that are not in the reference files.
delete from published_figures as landed
where not exists (
    select 1
    from staged_published_figures as given
    where
        landed.reference is not distinct from given.reference
        and landed.printed_table is not distinct from given.printed_table
        and landed.model is not distinct from given.model
        and landed.row_key is not distinct from given.row_key
        and landed.column_name is not distinct from given.column_name
        and landed.value is not distinct from given.value
        and landed.printed is not distinct from given.printed
        and landed.unit is not distinct from given.unit
        and landed.unit_known is not distinct from given.unit_known
);
