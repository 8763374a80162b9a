-- How losses by class of byte grow with the months after each model's cutoff.
-- Grain: one row per model, source, protocol, byte_class; source NULL: mean over sources. Only
--   models with a cutoff in the catalogue, and classes with bytes after it.
-- Units: bits per byte of the class, a year: the slope of a line through the monthly figures. *_low
--   and *_high bound a 95 % interval over time; NULL with fewer than 12 months, and reason says so.
-- A month differs from the line by a shock; see internal.slope_month_errors.
-- Months that get harder or easier for all models are part of the slope: compare models.
-- Source: docs/metrics.md (Losses by class of byte, Intervals).
create or replace view byte_class_ageing as
with points as (
    select
        model,
        scope,
        protocol,
        byte_class,
        month_number,
        month_number - avg(month_number) over curve as x,
        bits_of_text / share_of_bytes as y
    from internal.byte_class_months_at(cast(null as date))
    where is_after and share_of_bytes > 0
    window curve as (partition by model, scope, protocol, byte_class)
),

lines as (
    select
        *,
        sum(x * y) over curve / nullif(sum(x * x) over curve, 0) as slope,
        y - avg(y) over curve - x * sum(x * y) over curve / nullif(sum(x * x) over curve, 0)
            as residual
    from points
    window curve as (partition by model, scope, protocol, byte_class)
),

months as materialized (
    select
        *,
        case
            when month_number - lag(month_number) over curve = 1
                then residual * lag(residual) over curve
        end as product
    from lines
    window
        curve as (partition by model, scope, protocol, byte_class order by month_number)
),

curves as (
    select
        model,
        scope,
        protocol,
        byte_class,
        any_value(slope) as slope,
        count(*) as num_months,
        sum(residual * residual) as squares,
        sum(x * x) as squares_x,
        avg(product) / nullif(avg(residual * residual), 0) as correlation
    from months
    group by model, scope, protocol, byte_class
),

memories as (
    select
        *,
        month_memory(correlation, 2, num_months) as memory
    from curves
    where num_months >= minimum('months of a slope')
),

pairs as (
    select
        c.model,
        c.scope,
        c.protocol,
        c.byte_class,
        l.x * e.x as product,
        case when l.month_number = e.month_number then 1 else 2 end
        * power(c.memory, l.month_number - e.month_number) as correlation
    from memories as c
    inner join months as l
        on
            c.model = l.model
            and c.scope is not distinct from l.scope
            and c.protocol = l.protocol
            and c.byte_class = l.byte_class
    inner join months as e
        on
            l.model = e.model
            and l.scope is not distinct from e.scope
            and l.protocol = e.protocol
            and l.byte_class = e.byte_class
            and l.month_number >= e.month_number
),

sums as (
    select
        model,
        scope,
        protocol,
        byte_class,
        sum(correlation) as of_mean,
        sum(correlation * product) as of_slope
    from pairs
    group by model, scope, protocol, byte_class
),

errors as (
    select
        m.model,
        m.scope,
        m.protocol,
        m.byte_class,
        t_975(m.num_months // 3 - 2)
        * sqrt(
            m.squares
            / (m.num_months - s.of_mean / m.num_months - s.of_slope / m.squares_x)
            * s.of_slope
        )
        / m.squares_x as half
    from memories as m
    inner join sums as s
        on
            m.model = s.model
            and m.scope is not distinct from s.scope
            and m.protocol = s.protocol
            and m.byte_class = s.byte_class
)

select
    c.model,
    c.scope as source,
    case when c.scope is null then 'all' else 'source' end as scope,
    c.protocol,
    c.byte_class,
    12 * c.slope as growth_per_year,
    12 * (c.slope - e.half) as growth_per_year_low,
    12 * (c.slope + e.half) as growth_per_year_high,
    c.num_months as num_months_after,
    slope_reason(c.num_months, '', c.protocol, 0) as reason
from curves as c
left join errors as e
    on
        c.model = e.model
        and c.scope is not distinct from e.scope
        and c.protocol = e.protocol
        and c.byte_class = e.byte_class;
