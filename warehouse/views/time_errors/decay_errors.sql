-- Half widths of the 95 % intervals of a model's decay after release. For
--   decay_figures.
-- Grain: one row per model, source, protocol.
-- Units: percent. error_* are by other documents of these months. half_* are by other months: the
--   wider of error_* and decay_month_errors. The other columns are the standard errors of the mean,
--   and their degrees of freedom. NULL if the decay is NULL, or if a month has no standard error;
--   half_* also with fewer than two horizons.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.decay_errors as
with figures as (
    select
        model,
        source,
        protocol,
        figure,
        sum(power(coefficient, 2) * variance) as cell_variance,
        sum(power(coefficient, 4) * spread) as spread,
        sum(power(coefficient, 4) * num_cells) as squares,
        count(variance) = count(*) as has_errors
    from internal.decay_coefficients
    group by model, source, protocol, figure
),

sides as materialized (
    select
        *,
        dense_rank() over (order by model, source, protocol, horizon) as side
    from internal.decay_cells
    where horizon is not null
),

-- One number stands for side and replicate, as in split_replicates_at.
numbered as (
    select
        s.side * 256 + d.replicate as place,
        sum(d.deviation) as deviation,
        sum(d.weight_deviation) as weight_deviation
    from internal.pooled_deviations as d
    inner join sides as s
        on
            d.model = s.model
            and d.source = s.source
            and d.protocol = s.protocol
            and d.month = s.month
    group by s.side * 256 + d.replicate
),

keys as (
    select distinct
        side,
        model,
        source,
        protocol,
        horizon
    from sides
),

sums as (
    select
        k.*,
        n.place % 256 as replicate,
        n.deviation,
        n.weight_deviation
    from numbered as n
    inner join keys as k on n.place // 256 = k.side
),

replicates as (
    select
        c.model,
        c.source,
        c.protocol,
        c.figure,
        sum(c.coefficient * s.deviation) as deviation,
        sum(power(c.coefficient, 2) * s.weight_deviation) as weight_deviation
    from sums as s
    inner join internal.decay_coefficients as c
        on
            s.model = c.model
            and s.source = c.source
            and s.protocol = c.protocol
            and s.horizon = c.horizon
    group by c.model, c.source, c.protocol, c.figure, s.replicate
),

variances as (
    select
        model,
        source,
        protocol,
        figure,
        avg(deviation * deviation) as variance,
        avg(weight_deviation * weight_deviation) as overlap
    from replicates
    group by model, source, protocol, figure
),

standard_errors as (
    select
        f.*,
        sqrt(v.variance) as standard_error,
        satterthwaite(f.cell_variance, f.spread, v.overlap / f.squares) as degrees_of_freedom,
        m.standard_error as month_error,
        m.degrees_of_freedom as month_degrees
    from figures as f
    left join variances as v
        on
            f.has_errors
            and f.model = v.model
            and f.source = v.source
            and f.protocol = v.protocol
            and f.figure = v.figure
    left join internal.decay_month_errors as m
        on
            f.model = m.model
            and f.source = m.source
            and f.protocol = m.protocol
            and f.figure = m.figure
),

errors as (
    select
        *,
        standard_error * t_975(degrees_of_freedom) as error,
        month_error * t_975(month_degrees) as month_half
    from standard_errors
),

halves as (
    select
        *,
        wider_half(error, month_half) as half
    from errors
)

select
    model,
    source,
    protocol,
    max(error) filter (where figure = 3) as error_3,
    max(error) filter (where figure = 6) as error_6,
    max(error) filter (where figure = 9) as error_9,
    max(error) filter (where figure = 12) as error_12,
    max(error) filter (where figure = 0) as error_mean,
    max(half) filter (where figure = 3) as half_3,
    max(half) filter (where figure = 6) as half_6,
    max(half) filter (where figure = 9) as half_9,
    max(half) filter (where figure = 12) as half_12,
    max(half) filter (where figure = 0) as half_mean,
    max(standard_error) filter (where figure = 0) as mean_error,
    max(degrees_of_freedom) filter (where figure = 0) as mean_degrees,
    max(month_error) filter (where figure = 0) as month_error,
    max(month_degrees) filter (where figure = 0) as month_degrees
from halves
group by model, source, protocol;
