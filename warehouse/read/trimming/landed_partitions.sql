-- Delete rows of months after the release's month.
delete from internal.landed_partitions
where month > cast($last as date);
