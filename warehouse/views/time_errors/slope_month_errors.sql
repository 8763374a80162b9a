-- Standard errors of slopes, for other months. For slope_errors.
-- Grain: one row per model, scope, protocol with at least 12 months; scope is a source, or NULL for
--   the mean over sources. Published rates are left out.
-- A month differs from the line by a shock. All shocks have one variance, and a correlation of
--   memory^(months between them). Student's t has one degree of freedom per block of three months,
--   less the two of the line.
-- Units: bits per byte per month; shock, the standard deviation of a month, in bits per byte.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.slope_month_errors as
with points as (
    select
        model,
        scope,
        protocol,
        month_number,
        any_value(x) as x,
        avg(bits_per_byte) as y
    from internal.slope_cells
    where protocol <> 'published'
    group by model, scope, protocol, month_number
),

lines as (
    select
        *,
        y
        - avg(y) over curve
        - x * sum(x * y) over curve / nullif(sum(x * x) over curve, 0) as residual
    from points
    window curve as (partition by model, scope, protocol)
),

months as materialized (
    select
        *,
        case
            when month_number - lag(month_number) over curve = 1
                then residual * lag(residual) over curve
        end as product
    from lines
    window curve as (partition by model, scope, protocol order by month_number)
),

curves as (
    select
        model,
        scope,
        protocol,
        count(*) as num_months,
        sum(residual * residual) as squares,
        sum(x * x) as squares_x,
        avg(product) / nullif(avg(residual * residual), 0) as correlation
    from months
    group by model, scope, protocol
    having count(*) >= minimum('months of a slope')
),

memories as (
    select
        *,
        num_months // 3 - 2 as degrees_of_freedom,
        month_memory(correlation, 2, num_months) as memory
    from curves
),

pairs as (
    select
        c.* exclude (correlation),
        l.x * e.x as product,
        case when l.month_number = e.month_number then 1 else 2 end
        * power(c.memory, l.month_number - e.month_number) as correlation
    from memories as c
    inner join months as l
        on
            c.model = l.model
            and c.scope is not distinct from l.scope
            and c.protocol = l.protocol
    inner join months as e
        on
            l.model = e.model
            and l.scope is not distinct from e.scope
            and l.protocol = e.protocol
            and l.month_number >= e.month_number
),

-- Variances of the mean and of the slope, in squared shocks.
variances as (
    select
        model,
        scope,
        protocol,
        num_months,
        squares,
        squares_x,
        degrees_of_freedom,
        memory,
        sum(correlation) / power(num_months, 2) as of_mean,
        sum(correlation * product) / power(squares_x, 2) as of_slope
    from pairs
    group by model, scope, protocol, num_months, squares, squares_x, degrees_of_freedom, memory
),

shocks as (
    select
        *,
        sqrt(squares / (num_months * (1 - of_mean) - squares_x * of_slope)) as shock
    from variances
)

select
    model,
    scope,
    protocol,
    degrees_of_freedom,
    shock * sqrt(of_slope) as standard_error,
    shock,
    memory
from shocks;
