-- Why a decay after release, or one of its intervals, is NULL; NULL if none is.
-- Parameters: base, bits per byte before the release; num_quarters, the complete quarters after it;
--   protocol; document_error, half of the interval for other documents.
create or replace macro decay_reason(base, num_quarters, protocol, document_error) as
    case
        when base is null then 'fewer than six months right before the release'
        when num_quarters = 0 then 'no quarter after the release has all months'
        when protocol = 'published' then 'no interval: published rates have no documents'
        else
            coalesce(
                lacking_number(
                    num_quarters, 'complete quarter', ' after the release', 'quarters of a decay'
                ),
                lacking_documents(document_error)
            )
    end;
