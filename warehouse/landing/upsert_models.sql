-- Insert or replace rows of the dimension `models`.
-- Input: rows_to_land, Arrow data with the columns of the table.
insert or replace into models by name
select * from rows_to_land;
