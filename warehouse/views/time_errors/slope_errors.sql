-- Half widths of the 95 % intervals of slopes over months. For tbi_likelihood and its mean.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
-- Units: bits per byte per month. document_error is by other documents of these months (bootstrap;
--   NULL if a month has no standard error),
--   error by other months like these: the wider of document_error and slope_month_errors. With
--   monitored pages, the same documents recur every month, so the variation between months does
--   not show the former. error and p_value (of no slope) are NULL with fewer than 12 months.
-- Source: docs/metrics.md (Intervals); ADR 0016.
create or replace view internal.slope_errors as
with cells as materialized (
    select *
    from internal.slope_cells
    where coefficient is not null
),

figures as (
    select
        model,
        scope,
        protocol,
        sum(coefficient * bits_per_byte) as slope,
        sum(power(coefficient * standard_error, 2)) as cell_variance,
        sum(power(coefficient, 4) * spread) as spread,
        sum(power(coefficient, 4)) as squares,
        count(standard_error) = count(*) as has_errors
    from cells
    group by model, scope, protocol
),

replicates as (
    select
        c.model,
        c.scope,
        c.protocol,
        sum(c.coefficient * d.deviation) as deviation,
        sum(power(c.coefficient, 2) * d.weight_deviation) as weight_deviation
    from internal.pooled_deviations as d
    inner join cells as c
        on
            d.model = c.model
            and d.source = c.source
            and d.protocol = c.protocol
            and d.month = c.month
    group by c.model, c.scope, c.protocol, d.replicate
),

variances as (
    select
        model,
        scope,
        protocol,
        avg(deviation * deviation) as variance,
        avg(weight_deviation * weight_deviation) as overlap
    from replicates
    group by model, scope, protocol
),

errors as (
    select
        f.model,
        f.scope,
        f.protocol,
        f.slope,
        sqrt(v.variance) as document_error,
        satterthwaite(f.cell_variance, f.spread, v.overlap / f.squares) as document_degrees,
        m.standard_error as month_error,
        m.degrees_of_freedom as month_degrees
    from figures as f
    left join variances as v
        on
            f.has_errors
            and f.model = v.model
            and f.scope is not distinct from v.scope
            and f.protocol = v.protocol
    left join internal.slope_month_errors as m
        on
            f.model = m.model
            and f.scope is not distinct from m.scope
            and f.protocol = m.protocol
),

halves as (
    select
        *,
        document_error * t_975(document_degrees) as document_half,
        month_error * t_975(month_degrees) as month_half
    from errors
)

select
    model,
    scope,
    protocol,
    document_half as document_error,
    wider_half(document_half, month_half) as error,
    time_p_value(slope, document_error, document_degrees, month_error, month_degrees) as p_value
from halves;
