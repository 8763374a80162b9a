-- Delete the landed duplicates of one partition.
delete from internal.duplicate_of
where source = $source and month = cast($month as date);
