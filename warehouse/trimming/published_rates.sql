-- Drop what is of later months than the release's.
delete from published_rates
where month > cast($last as date);
