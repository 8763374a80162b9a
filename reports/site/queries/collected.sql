-- What became of the items that crawls found, by reason; counts of the manifests of sealed months.
-- outcome: kept, or the rule by which an item was left out
-- num_items: items that crawls of sealed months found [items]
-- share: share of the source's items [share]
-- num_months: months with this outcome [months]
-- source: name of the source
with counted as (
    select unnest(from_json($outcomes, '[{
        "source": "varchar", "outcome": "varchar", "num_items": "bigint", "num_months": "bigint"
    }]'), recursive := true)
)

select
    source,
    replace(outcome, '_', ' ') as outcome,
    num_items,
    num_items / nullif(sum(num_items) over (partition by source), 0) as share,
    num_months
from counted
order by source asc, outcome = 'kept' desc, num_items desc, outcome asc
