from comparable_cells_at(null)
