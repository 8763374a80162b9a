-- The columns that only the macro has, too.
from generalization_robustness_at(cast(null as date))
