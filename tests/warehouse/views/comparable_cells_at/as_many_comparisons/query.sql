from comparable_cells_at(['wiki'])
