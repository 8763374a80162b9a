-- The best division of each curve into straight lines: up to six, of at least three months each.
-- Grain: one row per model, protocol, source, first_position. For partial_change_points.
-- The best division minimises months * ln(residual squares) + 17 * changes. The penalty of 17 (BIC:
--   3 * ln(months)) gives a false change in about 1 % of curves of normal noise around any trend
--   (simulated: docs/metrics.md). Exact, by dynamic programming over the number of lines.
-- Source: penalised segmentation as in PELT (Killick et al. 2012, arXiv 1101.1438); LLMLagBench
--   (arXiv 2511.12116) uses PELT.
create or replace view internal.curve_segments as
with recursive segments as materialized (
    select
        *,
        dense_rank() over (order by model, protocol, source) as curve
    from internal.segment_fits
),

-- The best lines for the months up to last_position, given by the lines' first positions.
divisions as (
    select
        curve,
        1 as num_segments,
        last_position,
        squares_left,
        [first_position] as first_positions
    from segments
    where first_position = 1
    union all
    select
        s.curve,
        d.num_segments + 1 as num_segments,
        s.last_position,
        min(d.squares_left + s.squares_left) as squares_left,
        arg_min(
            list_append(d.first_positions, s.first_position), d.squares_left + s.squares_left
        ) as first_positions
    from divisions as d
    inner join segments as s on d.curve = s.curve and d.last_position + 1 = s.first_position
    where d.num_segments < 6
    group by s.curve, d.num_segments, s.last_position
),

whole as (
    select
        d.*,
        d.last_position * ln(d.squares_left) + 17 * (d.num_segments - 1) as criterion
    from divisions as d
    semi join segments as s on d.curve = s.curve and d.last_position = s.num_months
),

best as (
    select
        curve,
        arg_min(first_positions, criterion) as first_positions,
        arg_min(last_position, criterion) as num_months
    from whole
    group by curve
),

firsts as (
    select
        curve,
        num_months,
        unnest(first_positions) as first_position
    from best
),

bounds as (
    select
        *,
        coalesce(
            lead(first_position) over (partition by curve order by first_position) - 1, num_months
        ) as last_position
    from firsts
)

select s.* exclude (curve)
from segments as s
inner join bounds as b
    on
        s.curve = b.curve
        and s.first_position = b.first_position
        and s.last_position = b.last_position;
