-- Slope of the adjusted score over the opening dates of questions, and the paper's class.
-- bias_class: Nostalgia below -1, Neophilia above 1, else Balanced; the rule ignores chance
select
    model,
    source,
    protocol,
    tbi_x1000,
    tbi_x1000_low,
    tbi_x1000_high,
    bias_class,
    reason
from papers.forecast_tbi
order by source, model, protocol
