-- Delete the record of one partition's landed version.
delete from internal.landed_partitions
where source = $source and month is not distinct from cast($month as date);
