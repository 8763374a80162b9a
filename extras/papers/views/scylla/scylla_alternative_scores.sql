-- Other scores of generalisation than S: a ratio, a normalised gap, and information in bits.
-- Grain: one row per model, puzzle, protocol, ood_split, rules.
-- Units: ratio = ood_accuracy / id_accuracy. relative_gap = max(0, id_accuracy - ood_accuracy) /
--   id_accuracy, as relative_diff of the paper's code. information is the mutual information of
--   split and correctness in bits, 0 (equal accuracies) to 1: with h(p) = -p log2 p - (1 - p)
--   log2(1 - p), it is h((id + ood) / 2) - (h(id) + h(ood)) / 2. Each _low to _high are the 2.5 %
--   and 97.5 % percentiles of the bootstrap over items. That of information lies above 0 even for
--   equal true accuracies. NULL: see reason; the paper's code writes 1 for a ratio to 0.
-- Source: Qi et al. 2024, code (measure_id_ood_gap); docs/metrics.md (Puzzles).
create or replace view papers.scylla_alternative_scores as
with spread as (
    select
        model,
        puzzle,
        protocol,
        ood_split,
        rules,
        min(id_accuracy) > 0 as has_ratios,
        quantile_cont(ood_accuracy / nullif(id_accuracy, 0), [0.025, 0.975]) as ratios,
        quantile_cont(
            binary_entropy((id_accuracy + ood_accuracy) / 2)
            - (binary_entropy(id_accuracy) + binary_entropy(ood_accuracy)) / 2,
            [0.025, 0.975]
        ) as bits
    from internal.scylla_replicates
    group by model, puzzle, protocol, ood_split, rules
),

figures as (
    select
        scores.*,
        spread.bits,
        scores.ood_accuracy / nullif(scores.id_accuracy, 0) as ratio,
        case when spread.has_ratios and scores.id_accuracy > 0 then spread.ratios end as ratios
    from internal.scylla_puzzle_scores_details as scores
    left join spread
        on
            scores.model = spread.model
            and scores.puzzle = spread.puzzle
            and scores.protocol = spread.protocol
            and scores.ood_split = spread.ood_split
            and scores.rules = spread.rules
)

select
    model,
    puzzle,
    protocol,
    ood_split,
    rules,
    ratio,
    ratios[1] as ratio_low,
    ratios[2] as ratio_high,
    gap / nullif(id_accuracy, 0) as relative_gap,
    case when ratios is not null then greatest(0, 1 - ratios[2]) end as relative_gap_low,
    case when ratios is not null then greatest(0, 1 - ratios[1]) end as relative_gap_high,
    binary_entropy((id_accuracy + ood_accuracy) / 2)
    - (binary_entropy(id_accuracy) + binary_entropy(ood_accuracy)) / 2 as information,
    bits[1] as information_low,
    bits[2] as information_high,
    level,
    case
        when id_accuracy is null or ood_accuracy is null then 'nothing was asked'
        when id_accuracy = 0 then 'no right answer in distribution: no ratio'
        when ratios is null then 'replicates without a right answer: no interval of the ratio'
    end as reason
from figures;
