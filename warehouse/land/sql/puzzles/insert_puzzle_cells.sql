-- Insert the record of a cell. Input: puzzle_to_land, its row of scylla_cells.
insert into internal.scylla_cells by name
select * from puzzle_to_land;
