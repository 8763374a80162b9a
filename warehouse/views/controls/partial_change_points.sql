-- The months after which a model's curve changes its level or slope (partial cutoffs).
-- Grain: one row per model, source, protocol, change. source NULL: the mean over the model's
--   sources of text. Curves without a change, or of less than twelve months, have no rows.
-- The curve: bits per byte without the variation shared with control:zstd (controlled_level). It is
--   divided into lines of at least three months, with at most five changes (curve_segments).
-- Units: bits per byte; month: the last before the change; jump: line after - line before, in the
--   first month after the change; slopes: per month.
-- Source: docs/metrics.md (Control-adjusted figures and change points);
--   LLMLagBench, arXiv 2511.12116.
create or replace view internal.partial_change_points as
with segments as (
    select
        *,
        row_number() over curve - 1 as change,
        lag(slope) over curve as slope_before,
        lag(intercept) over curve as intercept_before,
        lag(last_month) over curve as month,
        count(*) over (partition by model, protocol, source) - 1 as num_changes
    from internal.curve_segments
    window curve as (partition by model, protocol, source order by first_position)
)

select
    model,
    source,
    protocol,
    change,
    num_changes,
    num_months,
    month,
    intercept + slope * first_x - intercept_before - slope_before * first_x as jump_bits_per_byte,
    slope_before,
    slope as slope_after
from segments
where change > 0;
