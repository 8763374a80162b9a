-- Every column of scylla_puzzle_scores. Units and NULLs: see that view.
-- Grain: one row per model, puzzle, protocol, ood_split, rules.
create or replace view internal.scylla_puzzle_scores_details as
with pairs as (
    select
        id.model,
        id.puzzle,
        id.protocol,
        ood.split as ood_split,
        id.rules,
        count(*) as num_pairs,
        count(*) filter (where id.is_correct and not ood.is_correct) as num_only_id,
        count(*) filter (where ood.is_correct and not id.is_correct) as num_only_ood,
        count(*) filter (where ood.is_correct) as num_ood
    from internal.scylla_judged_answers as id
    inner join internal.scylla_judged_answers as ood
        on
            id.model = ood.model
            and id.puzzle = ood.puzzle
            and id.protocol = ood.protocol
            and id.item = ood.item
            and id.rules = ood.rules
    where
        id.split = 'id'
        and ood.split <> 'id'
        and id.is_correct is not null
        and ood.is_correct is not null
    group by id.model, id.puzzle, id.protocol, ood.split, id.rules
),

moments as (
    select
        *,
        (num_only_id - num_only_ood) / (num_pairs + 2) as middle,
        (num_only_id + num_only_ood + 1) / (num_pairs + 2) as square,
        (num_ood + 1) / (num_pairs + 2) as ood_share,
        -- Mean of (id - ood) * ood: the product is -1 if only ood is right, else 0.
        -(num_only_ood + 0.5) / (num_pairs + 2) as product
    from pairs
)

select
    id.model,
    id.puzzle,
    id.protocol,
    ood.split as ood_split,
    id.rules,
    id.cell_status,
    id.level,
    coalesce(m.num_pairs, 0) as num_pairs,
    id.accuracy as id_accuracy,
    ood.accuracy as ood_accuracy,
    id.accuracy - ood.accuracy as signed_gap,
    m.middle - 1.959963984540054e0 * sqrt((m.square - m.middle * m.middle) / m.num_pairs)
        as signed_gap_low,
    m.middle + 1.959963984540054e0 * sqrt((m.square - m.middle * m.middle) / m.num_pairs)
        as signed_gap_high,
    -- greatest() would ignore NULL.
    case
        when id.accuracy > ood.accuracy then id.accuracy - ood.accuracy
        when id.accuracy <= ood.accuracy then 0e0
    end as gap,
    case
        when id.accuracy > ood.accuracy then 2 * ood.accuracy - id.accuracy
        when id.accuracy <= ood.accuracy then ood.accuracy
    end as score,
    m.middle as smoothed_gap,
    (m.square - m.middle * m.middle) / m.num_pairs as gap_variance,
    m.ood_share * (1 - m.ood_share) / m.num_pairs as ood_variance,
    (m.product - m.middle * m.ood_share) / m.num_pairs as covariance
from internal.scylla_accuracy_details as id
inner join
    internal.scylla_accuracy_details as ood
    on
        id.model = ood.model
        and id.puzzle = ood.puzzle
        and id.protocol = ood.protocol
        and id.rules = ood.rules
left join moments as m
    on
        id.model = m.model
        and id.puzzle = m.puzzle
        and id.protocol = m.protocol
        and id.rules = m.rules
        and ood.split = m.ood_split
where id.split = 'id' and ood.split <> 'id';
