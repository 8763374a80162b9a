-- No error of documents that are all alike, but of months; none where a month is of one cluster.
select
    model,
    scope,
    round(error, 7) as error
from internal.slope_errors;
