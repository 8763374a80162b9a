-- Delete the tokenizers of revisions without landed cells.
delete from tokenizers as t
where not exists (
    select 1
    from internal.landed_cells as cells
    where cells.model = t.model and cells.revision = t.revision
);
