-- Delete the documents of one partition.
delete from documents
where source = $source and month is not distinct from cast($month as date);
