select *
from internal.byte_class_cells
where model = 's'
