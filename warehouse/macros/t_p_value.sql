-- Two-sided p-value of Student's t.
-- Parameters: t, the statistic; degrees_of_freedom, at least 1.
-- Error of the probability: 0.03 at 1 degree of freedom, 5e-4 at 2, 3e-5 at 3, 1e-6 at 5.
-- Source: Hill 1970, "Algorithm 395: Student's t-distribution", CACM 13(10): t becomes a normal
-- deviate by an expansion in 1 / degrees_of_freedom.
-- Each lambda has its argument copied once: nested macros would copy t thousands of times.
create or replace macro t_p_value(t, degrees_of_freedom) as
    2 * list_transform(
        list_transform(
            [(degrees_of_freedom - 0.5e0) * ln(1 + t * t / degrees_of_freedom)],
            lambda z: hill_deviate(
                z, 48 * (degrees_of_freedom - 0.5e0) * (degrees_of_freedom - 0.5e0)
            )
        ),
        lambda x: normal_tail(x)
    )[1];
