-- Bootstrap replicates of the incoming cells' sums: 200 times, each cluster of documents is drawn
-- Poisson(1) times. A cluster has the same weight in every cell, so differences are paired.
-- A cell of a single cluster has none: its ratio would be the same in all of them, a false
-- certainty.
-- Source: Poisson bootstrap, Chamandy et al. 2012, "Estimating Uncertainty for Massive Data
-- Streams"; the weight is the Poisson(1) quantile of u / (2^31 - 1), u as in replicate_constants.
-- Sums are of whole numbers (nats in 1/65536), so that their order cannot change the result.
insert into cell_replicates
with clusters as materialized (
    select
        model,
        source,
        month,
        protocol,
        cluster_id,
        cast(nll_nats * 65536 as bigint) as nll,
        num_bytes
    from incoming_clusters
),

cells as materialized (
    select
        model,
        source,
        month,
        protocol,
        cast(row_number() over () as integer) as cell
    from clusters
    group by model, source, month, protocol
    having count(*) > 1
),

seeds as materialized (
    select
        cluster_id,
        cast('0x' || substr(md5(cluster_id), 1, 8) as bigint) % 2147483647 as seed
    from clusters
    group by cluster_id
),

-- Materialised, so that no join is left to do once every row stands 200 times.
seeded as materialized (
    select
        cells.cell,
        seeds.seed,
        clusters.nll,
        clusters.num_bytes
    from clusters
    inner join seeds on clusters.cluster_id = seeds.cluster_id
    inner join cells
        on
            clusters.model = cells.model
            and clusters.source = cells.source
            and clusters.month is not distinct from cells.month
            and clusters.protocol = cells.protocol
),

draws as (
    select
        seeded.cell,
        r.replicate,
        seeded.nll,
        seeded.num_bytes,
        (r.multiplier * seeded.seed + r.increment) % 2147483647 as u
    from seeded
    cross join replicate_constants as r
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
inner join cells on sums.cell = cells.cell
order by cells.cell, sums.replicate;
