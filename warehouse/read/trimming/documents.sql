-- Delete rows of months after the release's month.
delete from documents
where month > cast($last as date);
