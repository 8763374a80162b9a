-- Upper end of the 95 % interval of a proportion; NULL if num_all is 0.
-- Parameters: num_true, num_all: the proportion is num_true / num_all.
-- Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
create or replace macro wilson_high(num_true, num_all) as
    1 - wilson_low(num_all - num_true, num_all);
