-- Land how a cell came to be. Input: puzzle_to_land, its row of scylla_cells.
insert into scylla_cells by name
select * from puzzle_to_land;
