-- No cutoff is needed where a date is given.
from internal.controlled_cells_at(date '2024-03-01')
where protocol = 'default';
