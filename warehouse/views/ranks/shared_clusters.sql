-- Difference of two models by cluster of shared documents, for cells with different documents.
-- Grain: one row per model, other_model, source, protocol, month, cluster_id; only paired_cells
--   with different documents that share some. For other views to read.
-- Only documents of which both models measured equally many bytes; otherwise they measured
--   different parts.
-- Units: difference_bits is model less other_model, in bits; num_bytes is UTF-8 length.
-- Source: docs/metrics.md (Pairs).
create or replace view internal.shared_clusters as
with pairs as materialized (
    select
        model,
        other_model,
        source,
        protocol,
        month,
        row_number() over () as id
    from internal.paired_cells
    where not has_same_documents
),

sides as (
    select
        id,
        unnest([true, false]) as is_first,
        unnest([model, other_model]) as model,
        source,
        protocol,
        month
    from pairs
),

cells as materialized (
    select
        model,
        source,
        protocol,
        month,
        row_number() over () as cell
    from sides
    group by model, source, protocol, month
),

-- The filters, always true, keep DuckDB 1.5 from adding up all of chunk_losses before the join.
losses as (
    select
        cells.cell,
        c.document_id,
        sum(c.nll_nats) filter (where cells.cell > 0) / ln(2) as bits,
        cast(sum(c.num_bytes) filter (where cells.cell > 0) as double) as num_bytes
    from main.chunk_losses as c
    inner join cells
        on
            c.model = cells.model
            and c.source = cells.source
            and c.protocol = cells.protocol
            and c.month = cells.month
    where c.nll_nats is not null
    group by cells.cell, c.document_id
),

documents_of_pairs as (
    select
        s.id,
        l.document_id,
        sum(case when s.is_first then l.bits else -l.bits end) as difference_bits,
        any_value(l.num_bytes) as num_bytes
    from losses as l
    inner join cells as k on l.cell = k.cell
    inner join sides as s
        on
            k.model = s.model
            and k.source = s.source
            and k.protocol = s.protocol
            and k.month = s.month
    group by s.id, l.document_id
    having count(*) = 2 and min(l.num_bytes) = max(l.num_bytes)
)

select
    p.model,
    p.other_model,
    p.source,
    p.protocol,
    p.month,
    coalesce(d.cluster_id, o.document_id) as cluster_id,
    count(*) as num_documents,
    sum(o.difference_bits) as difference_bits,
    sum(o.num_bytes) as num_bytes
from documents_of_pairs as o
inner join pairs as p on o.id = p.id
left join main.documents as d
    on p.source = d.source and p.month = d.month and o.document_id = d.document_id
group by
    p.model,
    p.other_model,
    p.source,
    p.protocol,
    p.month,
    coalesce(d.cluster_id, o.document_id);
