select *
from internal.byte_class_months_at(null)
where model = 's' and byte_class = 'words'
