-- A straight line through every run of at least three consecutive months of a curve (least
--   squares).
-- Grain: one row per model, protocol, source, first_position, last_position. For curve_segments.
--   Only curves of at least twelve months; positions are counted from 1.
-- Units: squares_left is in (bits per byte)^2, at least the rounding error; slope in bits per byte
--   per month; intercept in bits per byte: the line in the curve's first month less the curve's
--   mean.
create or replace view internal.segment_fits as
with points as (
    select
        model,
        protocol,
        source,
        month,
        count(*) over curve as num_months,
        date_diff('month', min(month) over curve, month) as x,
        level - avg(level) over curve as y,
        1e-20 * sum(level * level) over curve as rounding
    from internal.controlled_level
    window curve as (partition by model, protocol, source)
),

running as materialized (
    select
        *,
        count(*) over through as position,
        sum(x) over through as sum_x,
        sum(y) over through as sum_y,
        sum(x * x) over through as sum_xx,
        sum(x * y) over through as sum_xy,
        sum(y * y) over through as sum_yy
    from points
    where num_months >= 12
    window through as (partition by model, protocol, source order by month)
),

sums as (
    select
        b.model,
        b.protocol,
        b.source,
        b.num_months,
        b.rounding,
        a.position as first_position,
        b.position as last_position,
        b.month as last_month,
        a.x as first_x,
        b.position - a.position + 1 as k,
        b.sum_x - a.sum_x + a.x as sum_x,
        b.sum_y - a.sum_y + a.y as sum_y,
        b.sum_xx - a.sum_xx + a.x * a.x as sum_xx,
        b.sum_xy - a.sum_xy + a.x * a.y as sum_xy,
        b.sum_yy - a.sum_yy + a.y * a.y as sum_yy
    from running as a
    inner join running as b
        on
            a.model = b.model
            and a.protocol = b.protocol
            and a.source is not distinct from b.source
            and a.position + 2 <= b.position
),

lines as (
    select
        *,
        (sum_xy - sum_x * sum_y / k) / (sum_xx - sum_x * sum_x / k) as slope
    from sums
)

select
    model,
    protocol,
    source,
    num_months,
    first_position,
    last_position,
    last_month,
    first_x,
    slope,
    (sum_y - slope * sum_x) / k as intercept,
    greatest(
        sum_yy - sum_y * sum_y / k - slope * (sum_xy - sum_x * sum_y / k), rounding
    ) as squares_left
from lines;
