-- The residuals, half a bit, are not correlated with the months, nor positively among each other:
-- the variance is 3 / (12 - 2) = 0.3, that of the slope 0.3 / 143. 11 months are too few.
select
    model,
    scope,
    degrees_of_freedom,
    round(standard_error, 9) as standard_error
from internal.slope_month_errors;
