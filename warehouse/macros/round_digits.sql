-- A nonnegative number, rounded to 10 significant digits.
-- Parameter: x. Rounding removes last digits that depend on the order of a sum of doubles.
create or replace macro round_digits(x) as
    case
        when x > 0 and isfinite(x) then round(x, cast(9 - floor(log10(x)) as integer))
        else x
    end;
