-- Forget the tokenizers of revisions of which nothing is landed any more.
delete from tokenizers as t
where not exists (
    select 1
    from landed_cells as cells
    where cells.model = t.model and cells.revision = t.revision
);
