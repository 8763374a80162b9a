-- Why a slope over months, or one of its intervals, is NULL; NULL if none is.
-- Parameters: num_months; place, what follows "months"; protocol; document_error, half of the
--   interval for other documents.
create or replace macro slope_reason(num_months, place, protocol, document_error) as
    case
        when num_months < 2 then 'a single month'
        when protocol = 'published' then 'no interval: published rates have no documents'
        else
            coalesce(
                lacking_number(num_months, 'month', place, 'months of a slope'),
                lacking_documents(document_error)
            )
    end;
