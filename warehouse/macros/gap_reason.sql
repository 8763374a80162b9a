-- Why a gap, or one of its intervals, is NULL; NULL if none is.
-- Parameters: num_before and num_after, the months on each side of the split; protocol; period of
--   the source; document_error, half of the interval for other documents.
create or replace macro gap_reason(num_before, num_after, protocol, period, document_error) as
    case
        when num_before = 0 then 'no month before the cutoff'
        when num_after = 0 then 'no month after the cutoff'
        when protocol = 'published' then 'no interval: published rates have no documents'
        when period <> 'month' then 'no interval: a source of ' || period || 's'
        else coalesce(lacking_interval(num_before, num_after), lacking_documents(document_error))
    end;
