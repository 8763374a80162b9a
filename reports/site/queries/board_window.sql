-- Level and rank of each model of the board over a window of months.
-- months: name of the window of months
-- rank_set: ranks that other months, or documents, may give: low–high
-- interval_basis: what intervals are over: months, or documents of these months
select
    $span as months,
    h.*
from internal.headline_shown_at($first, $last) as h
order by h.rank, h.model
