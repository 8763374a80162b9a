-- Months that alternate have no memory: the variance is 3 / (12 - 2) = 0.3. b has one horizon.
select
    model,
    source,
    figure,
    degrees_of_freedom,
    round(standard_error, 6) as standard_error
from internal.decay_month_errors;
