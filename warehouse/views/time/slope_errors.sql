-- Half widths of the 95 % intervals of slopes over months. For tbi_likelihood and its mean.
-- Grain: one row per model, scope, protocol; scope is a source, or NULL for the mean over sources.
--   No row with fewer than 8 months, or if a month has no standard error.
-- Units: bits per byte per month. error is the larger of two errors: for random months
--   (slope_blocks), and for random documents (bootstrap). With monitored pages, the same documents
--   recur every month, so the variation between months does not show the second error.
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
        sum(power(coefficient * standard_error, 2)) as cell_variance,
        sum(power(coefficient, 4) * spread) as spread,
        sum(power(coefficient, 4)) as squares
    from cells
    group by model, scope, protocol
    having count(standard_error) = count(*)
),

replicates as (
    select
        c.model,
        c.scope,
        c.protocol,
        sum(c.coefficient * d.deviation) as deviation,
        sum(power(c.coefficient, 2) * d.weight_deviation) as weight_deviation
    from internal.replicate_deviations as d
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
)

select
    f.model,
    f.scope,
    f.protocol,
    greatest(
        b.error, half_interval(v.variance, f.cell_variance, f.spread, v.overlap / f.squares)
    ) as error
from figures as f
inner join variances as v
    on
        f.model = v.model
        and f.scope is not distinct from v.scope
        and f.protocol = v.protocol
inner join internal.slope_blocks as b
    on
        f.model = b.model
        and f.scope is not distinct from b.scope
        and f.protocol = b.protocol;
