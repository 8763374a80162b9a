-- Distribution function of the standard normal distribution.
-- Parameter: x, a number.
-- Error below 1e-14. Source: "Computer Approximations" (1968), function 5666, as rational
-- functions of |x| below 7.07 and a continued fraction above.
create or replace macro normal_cdf(x) as
    case
        when x > 0 then 1 - normal_tail(x)
        else normal_tail(-x)
    end;
