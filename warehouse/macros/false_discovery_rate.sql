-- Benjamini and Hochberg's q-value of a test among the tests of its family; a window function.
-- Parameters: p_value, NULL if nothing was tested; num_tests of the family; place of the test by
--   p_value, from 1; family, which identifies it.
-- Source: Benjamini and Hochberg 1995, "Controlling the False Discovery Rate", Journal of the Royal
--   Statistical Society B 57.
create or replace macro false_discovery_rate(p_value, num_tests, place, family) as
    case
        when p_value is not null
            then
                least(1, min(p_value * num_tests / place) over (
                    partition by family
                    order by place desc
                ))
    end;
