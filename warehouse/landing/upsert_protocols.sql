-- Insert or replace rows of the dimension `protocols`.
-- Input: rows_to_land, Arrow data with the columns of the table.
insert or replace into protocols by name
select * from rows_to_land;
