-- What a text should have been that day_of finds no day in.
-- Parameter: given. An instant of another zone is of another day in UTC for some hours.
create or replace macro day_wanted(given) as
    case
        when regexp_matches(trim(given), '^[\d-]{10}[T ][\d:.]+ ?([+-]\d|[A-Za-z])')
            then 'YYYY-MM-DD, or a time in UTC (with Z), not in another zone'
        else 'YYYY-MM-DD'
    end;
