-- Insert or replace rows of the dimension `protocols`.
-- Input: rows_to_land, Arrow data with the columns of the table.
delete from protocols
using rows_to_land as given
where protocols.protocol = given.protocol;

insert into protocols by name
select * from rows_to_land;
