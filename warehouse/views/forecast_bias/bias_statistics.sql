-- Two test statistics of each comparison of forecast_bias_test, summed over numbers of options.
-- Grain: one row per model, source, protocol, comparison with answers in both samples.
-- Units: z_proportions is Mantel and Haenszel's statistic of shares; z_ranks is van Elteren's of
--   ranks. Both are normal deviates: negative if recent answers are worse, NULL if nothing varies.
--   leeway: distance of the expected number of right recent answers from its possible range's
--   nearer end (Mantel and Fleiss). Below 5, normal deviates are not valid.
-- Source: Mantel and Haenszel 1959; van Elteren 1960; Mantel and Fleiss 1980.
create or replace view internal.bias_statistics as
with sized as (
    select
        *,
        count(*) over (partition by model, source, protocol, comparison, num_options) as size
    from internal.bias_samples
),

strata as (
    select
        model,
        source,
        protocol,
        comparison,
        num_options,
        count(*) as num_all,
        count(*) filter (where is_recent) as num_recent,
        count(*) filter (where not is_recent) as num_earlier,
        count(*) filter (where is_correct) as num_correct,
        count(*) filter (where is_correct and is_recent) as num_recent_correct,
        sum(rank) filter (where is_recent) as rank_sum,
        sum(pow(rank - (size + 1) / 2, 2)) as rank_squares,
        min(opened) filter (where not is_recent) as earlier_from,
        max(opened) filter (where not is_recent) as earlier_to,
        min(opened) filter (where is_recent) as recent_from,
        max(opened) filter (where is_recent) as recent_to
    from sized
    group by model, source, protocol, comparison, num_options
),

moments as (
    select
        *,
        num_recent_correct - num_recent * num_correct / num_all as excess,
        num_recent * num_earlier / num_all * num_correct / num_all * (num_all - num_correct)
        / nullif(num_all - 1, 0) as excess_variance,
        (rank_sum - num_recent * (num_all + 1) / 2) / (num_all + 1) as rank_excess,
        num_recent * num_earlier / num_all / nullif(num_all - 1, 0) * rank_squares
        / pow(num_all + 1, 2) as rank_variance,
        num_recent * num_correct / num_all - greatest(0, num_correct - num_earlier)
            as num_above_least,
        least(num_recent, num_correct) - num_recent * num_correct / num_all as num_below_most
    from strata
)

select
    model,
    source,
    protocol,
    comparison,
    min(earlier_from) as earlier_from,
    max(earlier_to) as earlier_to,
    min(recent_from) as recent_from,
    max(recent_to) as recent_to,
    cast(sum(num_earlier) as bigint) as num_earlier,
    cast(sum(num_recent) as bigint) as num_recent,
    cast(sum(num_correct - num_recent_correct) as bigint) as num_earlier_correct,
    cast(sum(num_recent_correct) as bigint) as num_recent_correct,
    sum(excess) / nullif(sqrt(sum(excess_variance)), 0) as z_proportions,
    sum(rank_excess) / nullif(sqrt(sum(rank_variance)), 0) as z_ranks,
    least(sum(num_above_least), sum(num_below_most)) as leeway
from moments
group by model, source, protocol, comparison
having sum(num_earlier) > 0 and sum(num_recent) > 0;
