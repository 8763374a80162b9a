-- Forget which version of one partition is landed.
delete from landed_partitions
where source = $source and month is not distinct from cast($month as date);
