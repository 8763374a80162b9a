-- Record the staged cells. A cell that rows were only added to keeps the provenance it had.
insert into landed_cells
with cells as (
    select
        model,
        any_value(revision) as revision,
        source,
        month,
        protocol,
        count(distinct document_id) as num_documents,
        count(*) as num_chunks,
        count(*) - count(nll_nats) as num_unmeasured
    from incoming
    group by model, source, month, protocol
)

select
    c.model,
    c.revision,
    c.source,
    c.month,
    c.protocol,
    coalesce($partition_digest, t.partition_digest) as partition_digest,
    coalesce($scoring, t.scoring) as scoring,
    c.num_documents,
    c.num_chunks,
    c.num_unmeasured
from cells as c
left join touched as t
    on
        c.model = t.model
        and c.source = t.source
        and c.month is not distinct from t.month
        and c.protocol = t.protocol;
