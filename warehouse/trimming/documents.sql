-- Drop what is of later months than the release's.
delete from documents
where month > cast($last as date);
