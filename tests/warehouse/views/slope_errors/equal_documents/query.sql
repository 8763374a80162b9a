-- No error of documents that are all alike, but of months; none where a month is of one cluster.
select
    model,
    scope,
    round(document_error, 6) as document_error,
    round(error, 6) as error,
    round(p_value, 2) as p
from internal.slope_errors;
