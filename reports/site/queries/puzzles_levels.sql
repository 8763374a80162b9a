-- Share of right answers by level, on a model's own inputs and on others.
-- panel: model, and how it was asked
-- inputs: its own inputs, or other inputs
-- accuracy: share of items that were solved [share]
-- is_critical: True at the level of the largest gap
with both_inputs as (
    select
        model,
        protocol,
        level,
        'its own inputs' as inputs,
        id_accuracy as accuracy
    from scylla_scores
    where rules = 'strict' and ood_split = 'ood' and level is not null
    union all
    select
        model,
        protocol,
        level,
        'other inputs' as inputs,
        ood_accuracy as accuracy
    from scylla_scores
    where rules = 'strict' and ood_split = 'ood' and level is not null
)

select
    b.*,
    -- A model that is asked in several ways has a panel for each.
    case
        when
            min(b.protocol) over (partition by b.model)
            = max(b.protocol) over (partition by b.model)
            then b.model
        else b.model || ', ' || b.protocol
    end as panel,
    coalesce(c.status = 'found' and list_contains(c.tied_levels, b.level), false) as is_critical
from both_inputs as b
left join scylla_critical_complexity as c
    on b.model = c.model and b.protocol = c.protocol and c.rules = 'strict' and c.ood_split = 'ood'
where b.accuracy is not null
order by b.model, b.protocol, b.inputs, b.level
