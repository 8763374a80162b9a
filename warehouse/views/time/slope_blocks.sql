-- Uncertainty of a slope that is due to random variation between months. For tbi_likelihood.
-- Grain: one row per model, scope, protocol with at least 8 months; scope is a source, or NULL for
--   the mean over sources.
-- Units: bits per byte per month. error is half of a 95 % interval, by a jackknife that leaves out
--   one block of months at a time, because neighbouring months are similar. The number of blocks is
--   about the square root of the number of months; Student's t has one degree of freedom less.
-- Source: docs/metrics.md (Intervals); delete-a-group jackknife: Kott 2001, "The Delete-a-Group
--   Jackknife", Journal of Official Statistics 17(4); ADR 0016.
create or replace view internal.slope_blocks as
with curves as (
    select
        model,
        scope,
        protocol,
        month,
        any_value(x) as x,
        avg(bits_per_byte) as y
    from internal.slope_cells
    group by model, scope, protocol, month
),

numbered as (
    select
        *,
        row_number() over (partition by model, protocol, scope order by month) - 1 as number,
        count(*) over (partition by model, protocol, scope) as num_months,
        y - avg(y) over (partition by model, protocol, scope) as height
    from curves
),

in_blocks as (
    select
        *,
        greatest(4, cast(round(sqrt(num_months)) as bigint)) as num_blocks
    from numbered
    where num_months >= 8
),

blocks as (
    select
        model,
        scope,
        protocol,
        any_value(num_blocks) as num_blocks,
        count(*) as n,
        sum(x) as sx,
        sum(height) as sy,
        sum(x * x) as sxx,
        sum(x * height) as sxy
    from in_blocks
    group by model, scope, protocol, number * num_blocks // num_months
),

-- Sums over the months outside the block; over all months, x and y sum to 0.
others as (
    select
        *,
        sum(n) over whole - n as n_left,
        sum(sxx) over whole - sxx as sxx_left,
        sum(sxy) over whole - sxy as sxy_left,
        sum(sxy) over whole / sum(sxx) over whole as slope
    from blocks
    window whole as (partition by model, protocol, scope)
),

left_out as (
    select
        *,
        (sxy_left - sx * sy / n_left) / (sxx_left - sx * sx / n_left) as slope_left
    from others
)

select
    model,
    scope,
    protocol,
    sqrt(sum(power(slope_left - slope, 2)) * (any_value(num_blocks) - 1) / any_value(num_blocks))
    * t_975(any_value(num_blocks) - 1) as error
from left_out
group by model, scope, protocol;
