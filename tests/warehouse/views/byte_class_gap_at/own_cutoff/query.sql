select *
from byte_class_gap_at(cast(null as date))
where (model in ('a', 'g') and source is not null) or (model = 's' and source is null)
