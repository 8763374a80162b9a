-- Delete rows of months after the release's month.
delete from internal.cell_kinds
where month > cast($last as date);
