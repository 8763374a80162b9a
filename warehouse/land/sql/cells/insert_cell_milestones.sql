-- Insert the milestones of cells.
-- Input: record_to_land, Arrow data with the columns of the table.
insert into cell_milestones by name
select * from record_to_land;
