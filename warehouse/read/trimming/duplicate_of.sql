-- Delete rows of months after the release's month.
delete from internal.duplicate_of
where month > cast($last as date);
