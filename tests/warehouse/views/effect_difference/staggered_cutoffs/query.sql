select
    * replace (
        round(difference, 9) as difference,
        round(difference_low, 9) as difference_low,
        round(difference_high, 9) as difference_high
    )
from effect_difference
where effect = 'gap'
