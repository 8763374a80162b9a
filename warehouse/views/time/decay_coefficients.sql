-- Coefficients of monthly figures in a model's decay after release. For decay_errors.
-- Grain: one row per model, source, protocol, figure, horizon. figure is 3, 6, 9 or 12 (months
--   after release), or 0 for the mean of the existing figures.
-- Units: coefficient, in % per bit per byte, of each of the horizon's num_cells figures. It is the
--   derivative (delta method) of 100 * (mean of the horizon / mean of the base - 1). variance and
--   spread are sums over these cells; variance is NULL if a cell has no standard error.
-- Source: docs/metrics.md (Time, Intervals).
create or replace view internal.decay_coefficients as
with means as (
    select
        model,
        source,
        protocol,
        horizon,
        count(*) as num_cells,
        avg(bits_per_byte) as mean,
        case when count(standard_error) = count(*) then sum(power(standard_error, 2)) end
            as variance,
        sum(spread) as spread
    from internal.decay_cells
    where horizon is not null
    group by model, source, protocol, horizon
),

pairs as (
    select
        h.model,
        h.source,
        h.protocol,
        h.horizon,
        h.mean,
        b.mean as base,
        h.num_cells,
        b.num_cells as num_base
    from means as h
    inner join means as b
        on h.model = b.model and h.source = b.source and h.protocol = b.protocol and b.horizon = 0
    where h.horizon > 0 and b.mean > 0
),

single as (
    select
        model,
        source,
        protocol,
        horizon as figure,
        horizon,
        100 / (base * num_cells) as coefficient
    from pairs
    union all
    select
        model,
        source,
        protocol,
        horizon as figure,
        0 as horizon,
        -100 * mean / (base * base * num_base) as coefficient
    from pairs
),

num_horizons as (
    select
        model,
        source,
        protocol,
        count(*) as num_horizons
    from pairs
    group by model, source, protocol
),

with_mean as (
    select * from single
    union all
    select
        s.model,
        s.source,
        s.protocol,
        0 as figure,
        s.horizon,
        sum(s.coefficient) / any_value(n.num_horizons) as coefficient
    from single as s
    inner join num_horizons as n
        on s.model = n.model and s.source = n.source and s.protocol = n.protocol
    group by s.model, s.source, s.protocol, s.horizon
)

select
    c.*,
    m.num_cells,
    m.variance,
    m.spread
from with_mean as c
inner join means as m
    on
        c.model = m.model
        and c.source = m.source
        and c.protocol = m.protocol
        and c.horizon = m.horizon;
