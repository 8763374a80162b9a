-- Each ranked model of the board against the next one, on the cells of the board.
-- other: the next model on the board
-- rank: rank of the first of the two on the board [rank]
-- difference_low: lower end of the 95 % interval of the difference [bits per byte]
-- difference_high: upper end of the interval [bits per byte]
-- p_value_adjusted: Bonferroni's, over the models that are ranked
-- reason: why there is no interval, and no p
select
    rank,
    model,
    next_model as other,
    next_difference as difference,
    next_difference_low as difference_low,
    next_difference_high as difference_high,
    next_p_value_adjusted as p_value_adjusted,
    num_months,
    basis,
    next_reason as reason
from internal.headline_details
where next_model is not null
order by rank, model
