-- Delete rows of months after the release's month.
delete from internal.landed_cells
where month > cast($last as date);
