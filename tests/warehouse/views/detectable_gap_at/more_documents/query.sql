select * replace (round(standard_error, 9) as standard_error)
from detectable_gap_at(9)
where source = 'news'
