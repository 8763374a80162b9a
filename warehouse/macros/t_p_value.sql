-- Two-sided p-value of Student's t.
-- Parameters: t, the statistic; degrees_of_freedom, at least 1.
-- Error of the probability: 0.03 at 1 degree of freedom, 5e-4 at 2, 3e-5 at 3, 1e-6 at 5.
-- Source: Hill 1970, "Algorithm 395: Student's t-distribution", CACM 13(10): t becomes a normal
-- deviate by an expansion in 1 / degrees_of_freedom.
create or replace macro t_p_value(t, degrees_of_freedom) as
    2 * normal_tail(
        hill_deviate(
            (degrees_of_freedom - 0.5e0) * ln(1 + t * t / degrees_of_freedom),
            48 * (degrees_of_freedom - 0.5e0) * (degrees_of_freedom - 0.5e0)
        )
    );
