select * replace (round(detectable_gap_documents, 6) as detectable_gap_documents)
from detectable_gap_at(0)
