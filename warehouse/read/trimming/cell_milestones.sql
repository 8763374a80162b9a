-- Delete rows of months after the release's month.
delete from cell_milestones
where month > cast($last as date);
