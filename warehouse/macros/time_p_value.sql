-- Two-sided p-value of a figure of 0 over time: the larger of documents' and months'.
-- Parameters, columns rather than expressions, as macros copy them many times: figure; its standard
--   error and degrees of freedom by documents, and by months.
-- It is below 0.05 where the interval about time, the wider of the two, is on one side of 0. NULL
--   if months' error is unknown; months' alone if documents' is.
create or replace macro time_p_value(
    figure, document_error, document_degrees, month_error, month_degrees
) as
    case
        when month_error is not null and document_error is null
            then difference_p_value(figure, month_error, month_degrees)
        when month_error is not null
            then
                greatest(
                    difference_p_value(figure, document_error, document_degrees),
                    difference_p_value(figure, month_error, month_degrees)
                )
    end;
