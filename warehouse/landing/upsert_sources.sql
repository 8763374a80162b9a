-- Insert or replace rows of the dimension `sources`.
-- Input: rows_to_land, Arrow data with the columns of the table.
insert or replace into sources by name
select * from rows_to_land;
