-- Drop what is of later months than the release's.
delete from text_comparisons
where month > cast($last as date);
