-- Level and rank of each model of the board over a window of months.
select
    $span as months,
    h.*
from internal.headline_shown_at($first, $last) as h
order by h.rank, h.model
