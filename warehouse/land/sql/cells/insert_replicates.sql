-- Bootstrap replicates of the incoming cells' sums: 200 times, each cluster of documents is drawn
-- Poisson(1) times. A cluster has the same weight in every cell, so differences are paired.
-- Source: Poisson bootstrap, Chamandy et al. 2012, "Estimating Uncertainty for Massive Data
-- Streams"; the weight is the Poisson(1) quantile of u / (2^31 - 1), u as in replicate_constants.
-- Sums are of integers (nats in 1/65536), so that the result does not depend on the order.
insert into internal.cell_replicates
with draws as (
    select
        seeded.cell,
        r.replicate,
        seeded.nll,
        seeded.num_bytes,
        (r.multiplier * seeded.seed + r.increment) % 2147483647 as u
    from incoming_seeds as seeded
    cross join internal.replicate_constants as r
),

weighted as (
    select
        cell,
        replicate,
        nll,
        num_bytes,
        case
            when u < 790015084 then 0
            when u < 1580030168 then 1
            when u < 1975037710 then 2
            when u < 2106706891 then 3
            when u < 2139624186 then 4
            when u < 2146207645 then 5
            when u < 2147304888 then 6
            else 7
        end as weight
    from draws
),

sums as (
    select
        cell,
        replicate,
        sum(weight * nll) / 65536 as nll_nats,
        sum(weight * num_bytes) as num_bytes
    from weighted
    group by cell, replicate
)

select
    cells.model,
    cells.source,
    cells.month,
    cells.protocol,
    sums.replicate,
    sums.nll_nats,
    sums.num_bytes
from sums
inner join incoming_cells as cells on sums.cell = cells.cell
order by cells.cell, sums.replicate;
