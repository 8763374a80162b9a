-- Divergence of likelihoods in distribution (p) and out of distribution (q).
-- Grain: one row per model, puzzle, protocol, ood_split, measure (probability or perplexity).
-- Units: densities p and q are Gaussian kernel estimates with Scott's bandwidth, n^(-1/5) times the
--   standard deviation of the split's values. They are read at 100 equally spaced points from the
--   smallest to the largest value of both splits, and are at least 1e-10. With m = (p + q) / 2:
--   kl_divergence = sum of p · ln(p / q), js_divergence = half the sums of p · ln(p / m) and of
--   q · ln(q / m), in nats, as in the paper's code. The sums are no integrals, so they depend on
--   the scale, and kl_divergence may be negative. js_bits is the same for p and q that are divided
--   by their sums, in bits, 0 to 1: the one to compare. NULL: see reason.
-- Source: Qi et al. 2024, code (divergence_utils.py); docs/metrics.md (Puzzles).
create or replace view papers.scylla_divergence as
with figures as (
    unpivot (
        select
            model,
            puzzle,
            protocol,
            level,
            split,
            probability,
            perplexity
        from internal.scylla_item_likelihoods
    )
    on probability, perplexity into name measure value number
),

ood as (
    select
        model,
        puzzle,
        protocol,
        split,
        measure,
        list(number) as numbers
    from figures
    group by all
),

pairs as (
    select
        id.model,
        id.puzzle,
        id.protocol,
        id.level,
        ood.split as ood_split,
        id.measure,
        id.numbers as id_numbers,
        ood.numbers as ood_numbers,
        least(list_min(id.numbers), list_min(ood.numbers)) as first_point,
        greatest(list_max(id.numbers), list_max(ood.numbers)) as last_point,
        list_stddev_samp(id.numbers) * pow(len(id.numbers), -0.2e0) as id_width,
        list_stddev_samp(ood.numbers) * pow(len(ood.numbers), -0.2e0) as ood_width
    from (
        select
            model,
            puzzle,
            protocol,
            level,
            split,
            measure,
            list(number) as numbers
        from figures
        group by all
    ) as id
    inner join ood
        on
            id.model = ood.model
            and id.puzzle = ood.puzzle
            and id.protocol = ood.protocol
            and id.measure = ood.measure
    where id.split = 'id' and ood.split <> 'id'
),

points as (
    select
        *,
        first_point + unnest(range(100)) / 99e0 * (last_point - first_point) as point
    from pairs
    where id_width > 0 and ood_width > 0
),

densities as (
    select
        model,
        puzzle,
        protocol,
        ood_split,
        measure,
        greatest(
            list_avg(
                list_transform(id_numbers, lambda x: exp(-0.5e0 * pow((point - x) / id_width, 2)))
            )
            / (id_width * sqrt(2 * pi())),
            1e-10
        ) as p,
        greatest(
            list_avg(
                list_transform(ood_numbers, lambda x: exp(-0.5e0 * pow((point - x) / ood_width, 2)))
            )
            / (ood_width * sqrt(2 * pi())),
            1e-10
        ) as q,
        sum(p) over own as sum_p,
        sum(q) over own as sum_q
    from points
    window own as (partition by model, puzzle, protocol, ood_split, measure)
),

divergences as (
    select
        model,
        puzzle,
        protocol,
        ood_split,
        measure,
        sum(p * ln(p / q)) as kl_divergence,
        sum(p * ln(2 * p / (p + q)) + q * ln(2 * q / (p + q))) / 2 as js_divergence,
        sum(
            p / sum_p * log2(2 * p / sum_p / (p / sum_p + q / sum_q))
            + q / sum_q * log2(2 * q / sum_q / (p / sum_p + q / sum_q))
        ) / 2 as js_bits
    from densities
    group by model, puzzle, protocol, ood_split, measure
)

select
    pairs.model,
    pairs.puzzle,
    pairs.protocol,
    pairs.ood_split,
    pairs.measure,
    divergences.kl_divergence,
    divergences.js_divergence,
    divergences.js_bits,
    list_avg(pairs.id_numbers) as id_mean,
    list_avg(pairs.ood_numbers) as ood_mean,
    len(pairs.id_numbers) as num_id,
    len(pairs.ood_numbers) as num_ood,
    pairs.level,
    case
        when
            least(len(pairs.id_numbers), len(pairs.ood_numbers)) < minimum('items of a split')
            then
                too_few(
                    least(len(pairs.id_numbers), len(pairs.ood_numbers)), 'item',
                    ' with likelihoods in a split', 'items of a split'
                )
        when divergences.js_bits is null then 'all values of a split are equal'
    end as reason
from pairs
left join divergences
    on
        pairs.model = divergences.model
        and pairs.puzzle = divergences.puzzle
        and pairs.protocol = divergences.protocol
        and pairs.ood_split = divergences.ood_split
        and pairs.measure = divergences.measure;
