select
    * replace (
        round(difference_low, 6) as difference_low,
        round(difference_high, 6) as difference_high
    )
from model_difference;
