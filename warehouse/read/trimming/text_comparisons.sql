-- Delete rows of months after the release's month.
delete from internal.text_comparisons
where month > cast($last as date);
