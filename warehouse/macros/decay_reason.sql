-- Why a decay after release, or its interval over time, is NULL; NULL if neither is.
-- Parameters: base, bits per byte before the release; num_quarters, the complete quarters after it;
--   protocol.
create or replace macro decay_reason(base, num_quarters, protocol) as
    case
        when base is null then 'fewer than six months right before the release'
        when num_quarters = 0 then 'no quarter after the release has all months'
        when protocol = 'published' then 'no interval: published rates have no documents'
        else
            lacking_number(
                num_quarters, 'complete quarter', ' after the release', 'quarters of a decay'
            )
    end;
