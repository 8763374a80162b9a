-- The day (UTC) that a text means.
-- Parameter: given, YYYY-MM-DD, alone or with a time in UTC, or YYYY-MM for its first day. NULL for
--   anything else, for a time of another zone, and outside the years 1900 to 2199.
create or replace macro day_of(given) as
    case
        when regexp_full_match(trim(given), '(19|2[01])\d{2}-\d{2}')
            then try_cast(trim(given) || '-01' as date)
        when
            regexp_full_match(
                trim(given), '(19|2[01])\d{2}-\d{2}-\d{2}([T ][\d:.]+ ?(Z|UTC|[+]00(:?00)?)?)?'
            )
            then try_cast(left(trim(given), 10) as date)
    end;
