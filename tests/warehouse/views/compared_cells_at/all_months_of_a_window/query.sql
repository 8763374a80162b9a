from internal.compared_cells_at(date '2024-08-01', null, 'all')
