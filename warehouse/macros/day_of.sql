-- The day (UTC) of a text with a date or an instant.
-- Parameter: given, YYYY-MM-DD, alone or with a time of day in UTC. NULL for anything else, for a
--   time of another zone, and outside the years 1900 to 2199.
create or replace macro day_of(given) as
    case
        when
            regexp_full_match(
                trim(given),
                '(19|2[01])\d{2}-\d{2}-\d{2}([T ]([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([.]\d+)?)?)?'
                || ' ?(Z|UTC|[+]00(:?00)?)?)?'
            )
            then try_cast(left(trim(given), 10) as date)
    end;
