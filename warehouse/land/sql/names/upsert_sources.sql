-- Insert or replace rows of the dimension `sources`.
-- Input: rows_to_land, Arrow data with the columns of the table.
delete from sources
using rows_to_land as given
where sources.source = given.source;

insert into sources by name
select * from rows_to_land;
