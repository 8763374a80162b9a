-- The resolution: half the width of the interval of a difference, median over pairs of models.
select median((difference_high - difference_low) / 2) as resolution
from model_difference
where
    protocol = $protocol
    and source is null
    and model not like 'control:%'
    and other_model not like 'control:%'
