select *
from internal.byte_class_sides_at(null)
where (model = 'a' and scope is not null) or (model = 's' and scope is null)
