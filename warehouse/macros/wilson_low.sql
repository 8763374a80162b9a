-- Lower end of the 95 % interval of a proportion; NULL if num_all is 0.
-- Parameters: num_true, num_all: the proportion is num_true / num_all.
-- Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
create or replace macro wilson_low(num_true, num_all) as
    case
        when num_all > 0 and num_true is not null
            then greatest(
                0,
                (
                    num_true + 1.9207294103470503e0
                    - 1.959963984540054e0
                    * sqrt(num_true * (1 - num_true / num_all) + 0.96036470517352515e0)
                ) / (num_all + 3.8414588206941006e0)
            )
    end;
