-- The expected form of a date, for a text that day_of cannot parse.
-- Parameter: given. An instant of another time zone may lie on another day in UTC.
create or replace macro day_wanted(given) as
    case
        when regexp_matches(trim(given), '^[\d-]{10}[T ][\d:.]+ ?([+-]\d|[A-Za-z])')
            then 'YYYY-MM-DD, or a time in UTC (with Z), not in another zone'
        else 'YYYY-MM-DD'
    end;
