-- Insert the scoring costs of cells.
-- Input: record_to_land, Arrow data with the columns of the table.
insert into cell_costs by name
select * from record_to_land;
