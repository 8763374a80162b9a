-- Standard errors of a model's decay, for other months. For decay_errors.
-- Grain: one row per model, source, protocol, figure, as in decay_coefficients; only models with
--   the base and two complete horizons.
-- A month differs from the mean of its side (before or after the release) by a shock, as in
--   split_month_errors_at. What the model loses between its horizons counts as shock, too.
-- Units: percent.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.decay_month_errors as
with points as (
    select
        model,
        source,
        protocol,
        horizon,
        year(month) * 12 + month(month) as month_number,
        bits_per_byte - avg(bits_per_byte) over side as residual
    from internal.decay_cells
    where horizon is not null and protocol <> 'published'
    window side as (partition by model, source, protocol, horizon = 0)
),

months as materialized (
    select
        *,
        case
            when month_number - lag(month_number) over side = 1
                then residual * lag(residual) over side
        end as product
    from points
    window side as (partition by model, source, protocol, horizon = 0 order by month_number)
),

curves as (
    select
        model,
        source,
        protocol,
        count(*) filter (where horizon > 0) as num_after,
        sum(residual * residual) as squares,
        avg(product) / nullif(avg(residual * residual), 0) as correlation
    from months
    group by model, source, protocol
    having bool_or(horizon = 0) and count(*) >= 12
),

memories as (
    select
        *,
        num_after // 3 as degrees_of_freedom,
        month_memory(correlation, 2, 6 + num_after) as memory
    from curves
),

-- Sums of the months' correlations, for every two periods.
periods as (
    select
        c.model,
        c.source,
        c.protocol,
        any_value(c.num_after) as num_after,
        any_value(c.squares) as squares,
        any_value(c.degrees_of_freedom) as degrees_of_freedom,
        a.horizon,
        b.horizon as other_horizon,
        sum(power(c.memory, abs(a.month_number - b.month_number))) as correlation
    from memories as c
    inner join months as a
        on c.model = a.model and c.source = a.source and c.protocol = a.protocol
    inner join months as b
        on a.model = b.model and a.source = b.source and a.protocol = b.protocol
    group by c.model, c.source, c.protocol, a.horizon, b.horizon
),

shocks as (
    select
        model,
        source,
        protocol,
        any_value(squares) / (
            6 - sum(correlation) filter (where horizon = 0 and other_horizon = 0) / 6
            + any_value(num_after)
            - sum(correlation) filter (where horizon > 0 and other_horizon > 0)
            / any_value(num_after)
        ) as variance
    from periods
    group by model, source, protocol
)

select
    p.model,
    p.source,
    p.protocol,
    a.figure,
    any_value(p.degrees_of_freedom) as degrees_of_freedom,
    sqrt(any_value(s.variance) * sum(a.coefficient * b.coefficient * p.correlation))
        as standard_error
from periods as p
inner join shocks as s on p.model = s.model and p.source = s.source and p.protocol = s.protocol
inner join internal.decay_coefficients as a
    on
        p.model = a.model
        and p.source = a.source
        and p.protocol = a.protocol
        and p.horizon = a.horizon
inner join internal.decay_coefficients as b
    on
        p.model = b.model
        and p.source = b.source
        and p.protocol = b.protocol
        and p.other_horizon = b.horizon
        and a.figure = b.figure
group by p.model, p.source, p.protocol, a.figure;
