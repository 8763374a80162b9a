-- Probability of the right answer, and perplexity of answer and prompt, by puzzle and split.
-- Grain: one row per model, puzzle, protocol, split.
-- Units: means over items of the figures of internal.scylla_item_likelihoods. probability_low and
--   _high bound a normal 95 % interval of the mean, within 0 to 1. NULL: fewer than 2 items have a
--   likelihood. reason has the number of items; for none, the most frequent cause.
-- Source: Qi et al. 2024, code ("intrinsic"); docs/metrics.md (Puzzles).
create or replace view papers.scylla_likelihood as
with counts as (
    select
        model,
        puzzle,
        protocol,
        split,
        any_value(level) as level,
        count(*) filter (where token_nats is null) as num_unmeasured,
        mode(reason) as reason
    from internal.scylla_likelihoods
    group by model, puzzle, protocol, split
),

means as (
    select
        model,
        puzzle,
        protocol,
        split,
        avg(probability) as probability,
        1.959963984540054e0 * stddev_samp(probability) / sqrt(count(*)) as margin,
        avg(perplexity) as perplexity,
        avg(prompt_perplexity) as prompt_perplexity,
        count(*) as num_items
    from internal.scylla_item_likelihoods
    group by model, puzzle, protocol, split
)

select
    counts.model,
    counts.puzzle,
    counts.protocol,
    counts.split,
    means.probability,
    case when means.margin is not null then greatest(means.probability - means.margin, 0) end
        as probability_low,
    case when means.margin is not null then least(means.probability + means.margin, 1) end
        as probability_high,
    means.perplexity,
    means.prompt_perplexity,
    coalesce(means.num_items, 0) as num_items,
    counts.num_unmeasured,
    counts.level,
    case
        when means.num_items is null then counts.reason
        else lacking_number(means.num_items, 'item', ' with a likelihood', 'answers of a mean')
    end as reason
from counts
left join means
    on
        counts.model = means.model
        and counts.puzzle = means.puzzle
        and counts.protocol = means.protocol
        and counts.split = means.split;
