-- Drop what is of later months than the release's.
delete from landed_partitions
where month > cast($last as date);
