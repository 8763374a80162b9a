-- The 97.5 % quantile of Student's t distribution: half of a 95 % interval, in standard errors.
-- Parameter: degrees_of_freedom, at least 1; often a fraction (Satterthwaite's).
-- Relative error below 1e-7. ln(t / z) is smooth in 1 / degrees_of_freedom, z = 1.959964 the normal
-- quantile: a polynomial of degree 9, fitted by least squares to exact values at Chebyshev nodes.
create or replace macro t_975(degrees_of_freedom) as
    1.959963984540054e0
    * exp(
        (
            (
                (
                    (
                        (
                            (
                                (
                                    (
                                        0.01669917877e0 / degrees_of_freedom - 0.05011143309e0
                                    ) / degrees_of_freedom + 0.002344295461e0
                                ) / degrees_of_freedom + 0.1333177009e0
                            ) / degrees_of_freedom - 0.07293336352e0
                        ) / degrees_of_freedom - 0.2290335174e0
                    ) / degrees_of_freedom + 0.150795004e0
                ) / degrees_of_freedom + 0.7077262061e0
            ) / degrees_of_freedom + 1.210360316e0
        ) / degrees_of_freedom
    );
