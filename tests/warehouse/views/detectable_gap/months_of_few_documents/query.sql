select * replace (round(detectable_gap, 6) as detectable_gap)
from detectable_gap
