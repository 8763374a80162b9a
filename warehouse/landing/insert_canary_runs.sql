-- Record runs of the canary; those that are recorded already stay as they are.
-- Input: rows_to_land, Arrow data with the columns of the table.
insert or ignore into canary_runs by name
select * from rows_to_land;
