-- Forget what is landed of the duplicates of one partition.
delete from duplicate_of
where source = $source and month = cast($month as date);
