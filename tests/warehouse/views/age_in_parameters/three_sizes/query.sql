select
    * replace (
        round(equivalent_share, 5) as equivalent_share,
        round(equivalent_share_low, 5) as equivalent_share_low,
        round(equivalent_share_high, 5) as equivalent_share_high,
        round(equivalent_parameters / 1000) as equivalent_parameters
    )
from age_in_parameters
