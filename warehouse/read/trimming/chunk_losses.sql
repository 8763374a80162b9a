-- Delete rows of months after the release's month.
delete from chunk_losses
where month > cast($last as date);
