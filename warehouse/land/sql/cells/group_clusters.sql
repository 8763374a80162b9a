-- Sums over the measured chunks of each cluster of incoming documents (the unit of resampling).
-- Documents without a cluster are not grouped again: most have none, and grouping is expensive.
create or replace temp table incoming_clusters as
with clustered as (
    select
        cells.cell,
        d.document_id,
        d.cluster_id
    from documents as d
    inner join incoming_cells as cells
        on d.source = cells.source and d.month is not distinct from cells.month
    where d.cluster_id is not null
)

select
    i.cell,
    i.document_id as cluster_id,
    i.nll_nats,
    cast(i.num_bytes as double) as num_bytes
from incoming_documents as i
anti join clustered as d on i.cell = d.cell and i.document_id = d.document_id
where i.num_measured > 0
union all
select
    i.cell,
    d.cluster_id,
    sum_exactly(i.nll_nats) as nll_nats,
    cast(sum(i.num_bytes) as double) as num_bytes
from incoming_documents as i
inner join clustered as d on i.cell = d.cell and i.document_id = d.document_id
where i.num_measured > 0
group by i.cell, d.cluster_id;
