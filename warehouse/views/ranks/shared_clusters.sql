-- What two models lost on the documents that both measured, where theirs are not the same.
-- Grain: one row per model, other_model, source, protocol, month, cluster_id; only of paired_cells
--   whose documents differ, so far as they share any. For other views to read.
-- Only documents of which both measured as many bytes: of others, they measured different parts.
-- Units: difference_bits is model less other_model, in bits; num_bytes are UTF-8.
-- Reads chunk_losses, but of the cells in question alone: nothing where all documents are the same.
-- Source: metrics.md, section 5. Reads paired_cells, chunk_losses, documents.
create or replace view shared_clusters as
with pairs as materialized (
    select
        model,
        other_model,
        source,
        protocol,
        month
    from paired_cells
    where not has_same_documents
),

cells as (
    select distinct
        unnest([model, other_model]) as model,
        source,
        protocol,
        month
    from pairs
),

losses as materialized (
    select
        c.model,
        c.source,
        c.protocol,
        c.month,
        c.document_id,
        sum(c.nll_nats) / ln(2) as bits,
        cast(sum(c.num_bytes) as double) as num_bytes
    from chunk_losses as c
    semi join cells
        on
            c.model = cells.model
            and c.source = cells.source
            and c.protocol = cells.protocol
            and c.month = cells.month
    where c.nll_nats is not null
    group by c.model, c.source, c.protocol, c.month, c.document_id
)

select
    p.model,
    p.other_model,
    p.source,
    p.protocol,
    p.month,
    coalesce(d.cluster_id, a.document_id) as cluster_id,
    count(*) as num_documents,
    sum(a.bits - b.bits) as difference_bits,
    sum(a.num_bytes) as num_bytes
from pairs as p
inner join losses as a
    on
        p.model = a.model
        and p.source = a.source
        and p.protocol = a.protocol
        and p.month = a.month
inner join losses as b
    on
        p.other_model = b.model
        and p.source = b.source
        and p.protocol = b.protocol
        and p.month = b.month
        and a.document_id = b.document_id
        and a.num_bytes = b.num_bytes
left join documents as d
    on a.source = d.source and a.month = d.month and a.document_id = d.document_id
group by
    p.model,
    p.other_model,
    p.source,
    p.protocol,
    p.month,
    coalesce(d.cluster_id, a.document_id);
