-- The columns that only the macro has, too.
from train_test_gap_at(cast(null as date))
where scope = 'source'
