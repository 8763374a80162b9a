-- Insert or replace rows of the dimension `models`.
-- Input: rows_to_land, Arrow data with the columns of the table.
delete from models
using rows_to_land as given
where models.model = given.model;

insert into models by name
select * from rows_to_land;
