-- No error of documents that are all alike, but of months. Model b has a month of one
--   cluster, which gets the error of the other months.
select
    model,
    scope,
    round(document_error, 6) as document_error,
    round(error, 6) as error,
    round(p_value, 2) as p
from internal.slope_errors;
