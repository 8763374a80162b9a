-- The level of complexity with the largest gap between accuracy in and out of distribution.
-- Grain: one row per model, protocol, ood_split, rules.
-- Units: largest_level (1 to 5) has the largest clipped gap, the lowest level on a tie; gap is this
--   gap, and tied_levels are all levels with it. critical_level is largest_level if any level's
--   signed gap has a 95 % interval above 0 (status found), else NULL. probability: share of
--   bootstrap replicates in which largest_level has the largest gap; levels on a tie have equal
--   parts of a replicate. NULL if fewer than two levels have answers. joint_p_value allows for
--   the number of levels: without true gaps, at least one of five intervals is above 0 in 12 % of
--   models. missing_levels have no answers; partial_levels lack answers to some puzzle.
-- Source: Qi et al. 2024; docs/metrics.md (Puzzles).
create or replace view scylla_critical_complexity as
with compared as (
    select
        *,
        -- Rounded, because means of equal shares may differ in the last digit.
        max(round(gap, 12)) over (partition by model, protocol, ood_split, rules) as largest_gap
    from internal.scylla_valley
),

largest as (
    select
        model,
        protocol,
        ood_split,
        rules,
        list(level order by level) filter (where round(gap, 12) = largest_gap) as tied_levels,
        max(gap) as gap,
        count(*) filter (where signed_gap_low > 0) as num_above,
        min(joint_p_value) as joint_p_value,
        count(gap) as num_levels,
        list(level order by level) filter (where num_puzzles = 0) as missing_levels,
        list(level order by level) filter (where num_puzzles between 1 and num_expected - 1)
            as partial_levels
    from compared
    group by model, protocol, ood_split, rules
),

ranked as (
    select
        model,
        protocol,
        ood_split,
        rules,
        replicate,
        level,
        rank() over (
            partition by model, protocol, ood_split, rules, replicate
            order by round(gap, 12) desc
        ) as place
    from internal.scylla_replicate_levels
    where level is not null
),

drawn as (
    select
        model,
        protocol,
        ood_split,
        rules,
        level as largest_level,
        1 / count(*) over (partition by model, protocol, ood_split, rules, replicate) as share
    from ranked
    where place = 1
),

shares as (
    select
        model,
        protocol,
        ood_split,
        rules,
        largest_level,
        sum(share) / sum(sum(share)) over (partition by model, protocol, ood_split, rules)
            as probability
    from drawn
    group by model, protocol, ood_split, rules, largest_level
)

select
    largest.model,
    largest.protocol,
    largest.ood_split,
    largest.rules,
    case
        when largest.num_levels = 0 then 'no data'
        when largest.num_above = 0 then 'none'
        else 'found'
    end as status,
    case when largest.num_above > 0 then largest.tied_levels[1] end as critical_level,
    largest.tied_levels[1] as largest_level,
    coalesce(largest.tied_levels, []) as tied_levels,
    largest.gap,
    case when largest.num_levels > 1 then coalesce(shares.probability, 0) end as probability,
    largest.joint_p_value,
    largest.num_levels,
    coalesce(largest.missing_levels, []) as missing_levels,
    coalesce(largest.partial_levels, []) as partial_levels
from largest
left join shares
    on
        largest.model = shares.model
        and largest.protocol = shares.protocol
        and largest.ood_split = shares.ood_split
        and largest.rules = shares.rules
        and largest.tied_levels[1] = shares.largest_level;
