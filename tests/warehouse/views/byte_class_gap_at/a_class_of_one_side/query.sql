select *
from byte_class_gap_at(date '2024-07-01')
where model = 'a' and source is not null
