-- Probability that a standard normal variable exceeds x. For normal_cdf.
-- Parameter: x, a nonnegative number.
create or replace macro normal_tail(x) as
    case
        when x is null then null
        when x > 37 then 0
        when x < 7.07106781186547e0
            then
                exp(-x * x / 2)
                * (
                    (
                        (
                            (
                                (
                                    (3.52624965998911e-2 * x + 0.700383064443688e0) * x
                                    + 6.37396220353165e0
                                ) * x + 33.912866078383e0
                            ) * x + 112.079291497871e0
                        ) * x + 221.213596169931e0
                    ) * x + 220.206867912376e0
                )
                / (
                    (
                        (
                            (
                                (
                                    (
                                        (8.83883476483184e-2 * x + 1.75566716318264e0) * x
                                        + 16.064177579207e0
                                    ) * x + 86.7807322029461e0
                                ) * x + 296.564248779674e0
                            ) * x + 637.333633378831e0
                        ) * x + 793.826512519948e0
                    ) * x + 440.413735824752e0
                )
        else
            exp(-x * x / 2)
            / (2.506628274631000502e0 * (x + 1 / (x + 2 / (x + 3 / (x + 4 / (x + 0.65e0))))))
    end;
