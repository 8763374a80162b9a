-- Land the bootstrap replicates of a cell. Input: puzzle_replicates_to_land.
insert into internal.scylla_replicates by name
select * from puzzle_replicates_to_land;
