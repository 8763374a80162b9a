-- Delete tokenizers without a cell in the release.
delete from tokenizers
where model not in (
    select model
    from internal.landed_cells
    where coalesce(month <= cast($last as date), true)
);
