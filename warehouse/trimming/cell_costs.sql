-- Drop what is of later months than the release's.
delete from cell_costs
where month > cast($last as date);
