-- How often figures were right in simulated worlds (benchmarks/statistics.md). The shares are
-- recorded with the code, since no snapshot has simulated losses.
-- figure: view and figure
-- truth: what is counted
-- share: share of worlds [share]
-- share_low: lower end of Wilson's 95 % interval of share [share]
-- share_high: upper end of Wilson's 95 % interval of share [share]
-- worst_share: share in the worst kind of world [share]
-- worst_world: the worst kind of world
-- num_worlds: simulated worlds [worlds]
-- num_kinds: kinds of worlds [kinds]
-- num_known: kinds with a known exception [kinds]
-- num_outside: kinds whose share is outside its bounds [kinds]
-- is_high_good: True if a high share is good
with recorded as (
    select unnest(from_json($shares, '[{
        "world": "varchar", "figure": "varchar", "truth": "varchar", "num_worlds": "bigint",
        "num_right": "bigint", "bound": "varchar", "verdict": "varchar", "commit": "varchar"
    }]'), recursive := true)
),

counted as (
    select
        *,
        num_right / num_worlds as share,
        truth like 'coverage%' or truth in ('planted months found', 'worlds with a cutoff')
            as is_high_good
    from recorded
    where num_worlds > 0
)

select
    figure,
    truth,
    is_high_good,
    sum(num_right) / sum(num_worlds) as share,
    wilson_low(sum(num_right), sum(num_worlds)) as share_low,
    wilson_high(sum(num_right), sum(num_worlds)) as share_high,
    if(is_high_good, min(share), max(share)) as worst_share,
    if(is_high_good, arg_min(world, share), arg_max(world, share)) as worst_world,
    cast(sum(num_worlds) as bigint) as num_worlds,
    count(*) as num_kinds,
    count(*) filter (verdict like 'known%') as num_known,
    count(*) filter (verdict like 'FAILED%') as num_outside
from counted
group by figure, truth, is_high_good
order by truth like 'coverage%' desc, truth asc, figure asc
