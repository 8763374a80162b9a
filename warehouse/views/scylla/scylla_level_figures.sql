-- Means over the puzzles of a level, with the inputs of their intervals.
-- Grain: one row per model, protocol, ood_split, rules, level (1 to 5; NULL: all anchors).
-- Units: as scylla_puzzle_scores; probes are in no mean. score is the mean of the puzzles' scores:
--   each gap is clipped before the mean. num_expected is the number of puzzles: 3, 4, 3, 3, 4 at
--   levels 1 to 5, 17 in all, unless puzzles were added.
-- By chance, a clipped gap exceeds the true gap: by 0.4 standard errors on average if the true gap
--   is 0, and by less for larger gaps. score_bias is 0.42 exp(-z^2) standard errors per puzzle,
--   with z the gap in standard errors. score_error uses the variance of a normal variable clipped
--   at z + 0.7. scylla_scores computes its interval from both.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
create or replace view internal.scylla_level_figures as
with registry as (
    select num_anchors
    from internal.scylla_cells
    order by list_sum(num_anchors) desc
    limit 1
),

levels as (
    select
        unnest([1, 2, 3, 4, 5, null]) as level,
        unnest(list_append(num_anchors, list_sum(num_anchors)::integer)) as num_expected
    from registry
),

scaled as (
    select
        *,
        sqrt(gap_variance) as error,
        smoothed_gap / sqrt(gap_variance) as z
    from internal.scylla_puzzle_scores_details
),

shifted as (
    select
        *,
        normal_cdf(z + 0.7) as above,
        exp(-(z + 0.7) * (z + 0.7) / 2) / 2.5066282746310002e0 as density
    from scaled
),

corrected as (
    select
        *,
        0.42 * exp(-z * z) * error as bias,
        ood_variance
        - 2 * covariance * above
        + gap_variance
        * (
            ((z + 0.7) * (z + 0.7) + 1) * above + (z + 0.7) * density
            - (density + (z + 0.7) * above) * (density + (z + 0.7) * above)
        ) as variance
    from shifted
),

asked as (
    select distinct
        model,
        protocol,
        ood_split,
        rules
    from internal.scylla_puzzle_scores_details
)

select
    asked.*,
    levels.level,
    levels.num_expected,
    count(puzzle.score) as num_puzzles,
    count(*) filter (where puzzle.cell_status = 'insufficient_id_data') as num_insufficient,
    avg(puzzle.id_accuracy) filter (where puzzle.score is not null) as id_accuracy,
    avg(puzzle.ood_accuracy) filter (where puzzle.score is not null) as ood_accuracy,
    avg(puzzle.gap) as gap,
    avg(puzzle.signed_gap) as signed_gap,
    avg(puzzle.smoothed_gap) filter (where puzzle.score is not null) as smoothed_gap,
    -- NULL if a puzzle has no pair because of errors.
    case
        when count(puzzle.gap_variance) = count(puzzle.score)
            then sqrt(sum(puzzle.gap_variance)) / nullif(count(puzzle.score), 0)
    end as signed_gap_error,
    avg(puzzle.score) as score,
    avg(puzzle.bias) as score_bias,
    case
        when count(puzzle.variance) = count(puzzle.score)
            then sqrt(sum(puzzle.variance)) / nullif(count(puzzle.score), 0)
    end as score_error,
    case
        when num_puzzles = 0 and num_insufficient > 0 and num_insufficient = count(puzzle.puzzle)
            then 'no puzzle of the level has enough inputs'
        when num_puzzles = 0 then 'no puzzle of the level has answers'
        when count(puzzle.gap_variance) < num_puzzles
            then
                'no interval: '
                || num_puzzles - count(puzzle.gap_variance) || ' of ' || num_puzzles
                || ' puzzles without an item answered in both splits'
    end as reason
from asked
cross join levels
left join corrected as puzzle
    on
        asked.model = puzzle.model
        and asked.protocol = puzzle.protocol
        and asked.ood_split = puzzle.ood_split
        and asked.rules = puzzle.rules
        and puzzle.level = coalesce(levels.level, puzzle.level)
group by all;
