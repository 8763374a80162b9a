-- Whether a cell is landed just so. Input: puzzle_to_land, its row of scylla_cells.
select landed.puzzle
from (
    select * from scylla_cells
    intersect
    select * from puzzle_to_land
) as landed;
