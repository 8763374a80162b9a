-- Probability of num_true or more of num_all by chance; NULL if chance is not within 0 and 1.
-- Parameters: num_true, num_all: counts; chance: the probability of each. If chance differs, its
--   mean gives a larger probability, from one above the expected number on (Hoeffding).
-- Source: Hoeffding 1956, "On the distribution of the number of successes in independent trials",
--   Annals of Mathematical Statistics 27.
create or replace macro binomial_tail(num_true, num_all, chance) as
    case
        when num_all > 0 and chance > 0 and chance < 1
            then
                least(1, list_sum(list_transform(
                    range(cast(round(num_true) as bigint), cast(num_all as bigint) + 1),
                    lambda k: exp(
                        lgamma(num_all + 1) - lgamma(k + 1) - lgamma(num_all - k + 1)
                        + k * ln(chance) + (num_all - k) * ln(1 - chance)
                    )
                )))
    end;
