from internal.split_cells_at(date '2024-03-01');
