from internal.compared_cells_at(null, null, 'new')
