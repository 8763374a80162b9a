from internal.comparable_cells_at(null)
