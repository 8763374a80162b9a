-- Delete rows of months after the release's month.
delete from byte_class_losses
where month > cast($last as date);
