select *
from internal.byte_class_errors_at(null)
where scope is not null
