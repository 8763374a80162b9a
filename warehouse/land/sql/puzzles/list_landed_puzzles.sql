-- The landed cells of answers to puzzles, each with its record.
from internal.scylla_cells;
