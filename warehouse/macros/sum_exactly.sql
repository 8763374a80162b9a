-- Sum of numbers that are not negative, the same in whatever order they come.
-- Parameter: x, a column of doubles below 2^46. Whole parts and fractions (in 2^-40) are added as
-- integers: an order of rows, or a number of threads, cannot show in the last digit.
create or replace macro sum_exactly(x) as
    cast(sum(cast(floor(x) as bigint)) as double)
    + cast(sum(cast((x - floor(x)) * 1099511627776 as bigint)) as double) / 1099511627776;
