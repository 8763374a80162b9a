-- A number that is not negative, rounded to 10 significant digits.
-- Parameter: x. What the order of a sum of doubles leaves in its last digits is gone.
create or replace macro round_digits(x) as
    case
        when x > 0 and isfinite(x) then round(x, cast(9 - floor(log10(x)) as integer))
        else x
    end;
