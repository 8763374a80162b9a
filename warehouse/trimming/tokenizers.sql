-- Drop the tokenizers of which the release has no cell.
delete from tokenizers
where model not in (
    select model
    from landed_cells
    where coalesce(month <= cast($last as date), true)
);
