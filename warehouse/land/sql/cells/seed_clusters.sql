-- The incoming clusters with the seeds of their weights, which are the same in every cell.
-- A separate table, because DuckDB then knows its size and plans the 200 draws better (a seventh of
-- the processor time of a single statement).
-- A cell with a single cluster is left out: all its replicates would be equal, which would show a
-- false certainty.
create or replace temp table incoming_seeds as
with seeds as materialized (
    select
        cluster_id,
        cast('0x' || substr(md5(cluster_id), 1, 8) as bigint) % 2147483647 as seed
    from incoming_clusters
    group by cluster_id
),

several as (
    select cell
    from incoming_clusters
    group by cell
    having count(*) > 1
)

select
    k.cell,
    seeds.seed,
    round(k.nll_nats * 65536) as nll,
    k.num_bytes
from incoming_clusters as k
semi join several on k.cell = several.cell
inner join seeds on k.cluster_id = seeds.cluster_id
order by k.cell;
