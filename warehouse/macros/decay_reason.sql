-- Why a decay after release, or its interval over time, is NULL; NULL if neither is.
-- Parameters: num_base, the months with a figure of the six right before the release;
--   num_quarters, the complete quarters after it; protocol.
create or replace macro decay_reason(num_base, num_quarters, protocol) as
    case
        when num_base < minimum('months of the base')
            then too_few(num_base, 'month', ' right before the release', 'months of the base')
        when num_quarters = 0 then 'no quarter after the release has all months'
        when protocol = 'published' then 'no interval: published rates have no documents'
        else
            lacking_number(
                num_quarters, 'complete quarter', ' after the release', 'quarters of a decay'
            )
    end;
