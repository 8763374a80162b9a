-- Sums of the incoming cells by kind of document. Documents that have not landed are of no kind.
-- Errors are computed and rounded as in insert_cells; a cluster in two kinds counts in each.
insert into internal.cell_kinds
with clusters as materialized (
    select
        i.cell,
        kind_of(d.category, d.language) as kind,
        coalesce(d.cluster_id, i.document_id) as cluster_id,
        count(*) as num_documents,
        sum_exactly(i.nll_nats) as nll_nats,
        cast(sum(i.num_bytes) as double) as num_bytes
    from incoming_documents as i
    inner join incoming_cells as c on i.cell = c.cell
    inner join documents as d
        on
            c.source = d.source
            and c.month is not distinct from d.month
            and i.document_id = d.document_id
    where i.num_measured > 0
    group by all
),

sums as materialized (
    select
        cell,
        kind,
        count(*) as num_clusters,
        sum(num_documents) as num_documents,
        sum_exactly(nll_nats) as nll_nats,
        sum(num_bytes) as num_bytes
    from clusters
    group by cell, kind
),

residuals as (
    select
        k.cell,
        k.kind,
        (k.nll_nats - k.num_bytes * s.nll_nats / nullif(s.num_bytes, 0)) / ln(2)
        / nullif(1 - k.num_bytes / nullif(s.num_bytes, 0), 0) as residual
    from clusters as k
    inner join sums as s on k.cell = s.cell and k.kind = s.kind
),

squares as (
    select
        cell,
        kind,
        count(residual) = count(*) as has_error,
        fsum(residual * residual) as sum_2,
        fsum(residual * residual * residual * residual) as sum_4
    from residuals
    group by cell, kind
)

select
    c.model,
    c.source,
    c.month,
    c.protocol,
    s.kind,
    cast(s.num_documents as bigint) as num_documents,
    s.nll_nats,
    cast(s.num_bytes as bigint) as num_bytes,
    case
        when q.has_error
            then round_digits(sqrt(q.sum_2 * (s.num_clusters - 1) / s.num_clusters) / s.num_bytes)
    end as standard_error,
    case
        when q.has_error
            then
                least(
                    s.num_clusters - 1,
                    coalesce(round_digits(q.sum_2 * q.sum_2 / nullif(q.sum_4, 0)), 'inf')
                )
    end as degrees_of_freedom
from sums as s
inner join incoming_cells as c on s.cell = c.cell
inner join squares as q on s.cell = q.cell and s.kind = q.kind;
