select *
from byte_class_ageing
where model in ('a', 'g') and source is not null
