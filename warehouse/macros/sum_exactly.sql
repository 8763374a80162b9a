-- Exact sum of nonnegative numbers, independent of their order.
-- Parameter: x, a column of doubles below 2^46. Whole parts and fractions (in 2^-40) are added as
-- integers: the order of rows and the number of threads do not change the last digit.
create or replace macro sum_exactly(x) as
    cast(sum(cast(floor(x) as bigint)) as double)
    + cast(sum(cast((x - floor(x)) * 1099511627776 as bigint)) as double) / 1099511627776;
