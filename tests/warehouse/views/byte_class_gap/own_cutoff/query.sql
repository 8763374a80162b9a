select *
from byte_class_gap
where (model in ('a', 'g') and source is not null) or (model = 's' and source is null)
