-- Drop what is of later months than the release's.
delete from duplicate_of
where month > cast($last as date);
