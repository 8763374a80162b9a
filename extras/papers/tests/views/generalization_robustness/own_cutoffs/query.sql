-- The columns that only the macro has, too.
from papers.generalization_robustness_at(cast(null as date))
