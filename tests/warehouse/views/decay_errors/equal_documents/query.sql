-- One month of model b is of a single document: its error is that of the other months, 0.
select
    model,
    round(error_3, 5) as error_3,
    round(error_6, 5) as error_6,
    error_9,
    error_12,
    round(error_mean, 5) as error_mean
from internal.decay_errors;
