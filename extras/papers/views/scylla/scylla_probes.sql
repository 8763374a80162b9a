-- The level at which the anchors (puzzles with a level) have the accuracy of a probe.
-- Grain: one row per model, puzzle, protocol, ood_split, rules; puzzles without a level (probes).
-- Units: level_equivalent (1 to 5) is the first level at which the line through the levels' mean
--   accuracies out of distribution has the probe's accuracy. num_crossings counts all such places
--   (a flat stretch is one place). first_level and last_level are the ends of the line, which skips
--   levels without answers. There is no interval; the error is a few tenths of a level.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
create or replace view papers.scylla_probes as
with differences as (
    select
        probe.model,
        probe.puzzle,
        probe.protocol,
        probe.ood_split,
        probe.rules,
        probe.cell_status,
        probe.ood_accuracy,
        f.level,
        round(f.ood_accuracy - probe.ood_accuracy, 12) as difference
    from internal.scylla_puzzle_scores_details as probe
    left join internal.scylla_level_figures as f
        on
            probe.model = f.model
            and probe.protocol = f.protocol
            and probe.ood_split = f.ood_split
            and probe.rules = f.rules
            and f.level is not null
            and f.ood_accuracy is not null
    where probe.level is null
),

segments as (
    select
        *,
        lag(level) over line as former_level,
        lag(difference) over line as former
    from differences
    window line as (partition by model, puzzle, protocol, ood_split, rules order by level)
),

crossings as (
    select
        *,
        case
            when difference = 0 and coalesce(former, 1) <> 0 then level
            when former * difference < 0
                then
                    former_level
                    + (level - former_level) * former / (former - difference)
        end as crossing
    from segments
)

select
    model,
    puzzle,
    protocol,
    ood_split,
    rules,
    case
        when any_value(cell_status) <> 'complete' then any_value(cell_status)
        when count(difference) = 0 then 'no data'
        when count(crossing) > 0 then 'crosses'
        when max(difference) < 0 then 'easier than level ' || min(level)
        else 'harder than level ' || max(level)
    end as status,
    any_value(ood_accuracy) as ood_accuracy,
    cast(min(crossing) as double) as level_equivalent,
    count(crossing) as num_crossings,
    min(level) as first_level,
    max(level) as last_level
from crossings
group by model, puzzle, protocol, ood_split, rules;
