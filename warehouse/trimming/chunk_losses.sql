-- Drop what is of later months than the release's.
delete from chunk_losses
where month > cast($last as date);
