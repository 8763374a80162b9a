-- The normal deviate of Student's t. For t_p_value.
-- Parameters: z = (n - 1/2) * ln(1 + t^2 / n) and b = 48 * (n - 1/2)^2 at n degrees of freedom.
create or replace macro hill_deviate(z, b) as
    (
        (
            (((-0.4e0 * z - 3.3e0) * z - 24) * z - 85.5e0) / (0.8e0 * z * z + 100 + b) + z + 3
        ) / b + 1
    ) * sqrt(z);
