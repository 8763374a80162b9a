-- Sums over the measured chunks of each cluster of incoming documents: what is resampled together.
create or replace temp table incoming_clusters as
select
    i.model,
    i.source,
    i.month,
    i.protocol,
    coalesce(d.cluster_id, i.document_id) as cluster_id,
    sum_exactly(i.nll_nats) as nll_nats,
    cast(sum(i.num_bytes) as double) as num_bytes
from incoming_documents as i
left join documents as d
    on
        i.source = d.source
        and i.month is not distinct from d.month
        and i.document_id = d.document_id
where i.num_measured > 0
group by i.model, i.source, i.month, i.protocol, coalesce(d.cluster_id, i.document_id);
