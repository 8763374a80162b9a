-- Delete rows of months after the release's month.
delete from internal.published_rates
where month > cast($last as date);
