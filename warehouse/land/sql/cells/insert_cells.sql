-- Insert the incoming cells. A cell that imported rows of the same revision extend or replace keeps
-- its provenance: a user's rows stay until the cell is scored differently.
-- The standard error is the jackknife's over clusters, for a ratio of sums: each cluster's residual
-- is divided by (1 - its share of the bytes). With log-normal lengths, few clusters carry most of
-- the error; Satterthwaite's degrees of freedom account for their number.
-- Both are rounded, so that the last digits do not depend on the number of threads.
-- Input: provenance, Arrow data with one row per cell scored here; imported losses have none.
insert into internal.landed_cells
with sums as materialized (
    select
        cell,
        count(*) as num_documents,
        cast(sum(num_chunks) as bigint) as num_chunks,
        cast(sum(num_chunks - num_measured) as bigint) as num_unmeasured,
        cast(sum(num_not_finite) as bigint) as num_not_finite,
        sum_exactly(nll_nats) as nll_nats,
        cast(sum(num_tokens) as bigint) as num_tokens,
        cast(sum(num_chars) as bigint) as num_chars,
        cast(sum(num_bytes) as bigint) as num_bytes,
        coalesce(
            bit_xor(cast('0x' || substr(md5(document_id || ' ' || num_bytes), 1, 15) as bigint)), 0
        ) as fingerprint
    from incoming_documents
    group by cell
),

-- In bits; NULL if one cluster has all bytes.
residuals as (
    select
        k.cell,
        (k.nll_nats - k.num_bytes * s.nll_nats / nullif(s.num_bytes, 0)) / ln(2)
        / nullif(1 - k.num_bytes / nullif(s.num_bytes, 0), 0) as residual
    from incoming_clusters as k
    inner join sums as s on k.cell = s.cell
),

squares as (
    select
        cell,
        count(*) as num_clusters,
        count(residual) = count(*) as has_error,
        fsum(residual * residual) as sum_2,
        fsum(residual * residual * residual * residual) as sum_4
    from residuals
    group by cell
)

select
    c.model,
    c.revision,
    c.source,
    c.month,
    c.protocol,
    coalesce(p.partition_digest, case when t.revision = c.revision then t.partition_digest end)
        as partition_digest,
    coalesce(
        p.partition_version,
        case when t.revision = c.revision then t.partition_version end
    ) as partition_version,
    coalesce(p.scoring, case when t.revision = c.revision then t.scoring end) as scoring,
    s.num_documents,
    s.num_chunks,
    s.num_unmeasured,
    s.num_not_finite,
    s.nll_nats,
    s.num_tokens,
    s.num_chars,
    s.num_bytes,
    coalesce(q.num_clusters, 0) as num_clusters,
    case
        when q.has_error
            then
                round_digits(
                    sqrt(q.sum_2 * (q.num_clusters - 1) / q.num_clusters) / s.num_bytes
                )
    end as standard_error,
    case
        when q.has_error
            then
                least(
                    q.num_clusters - 1,
                    coalesce(round_digits(q.sum_2 * q.sum_2 / nullif(q.sum_4, 0)), 'inf')
                )
    end as degrees_of_freedom,
    s.fingerprint
from incoming_cells as c
inner join sums as s on c.cell = s.cell
left join squares as q on c.cell = q.cell
left join provenance as p
    on
        c.model = p.model
        and c.source = p.source
        and c.month is not distinct from p.month
        and c.protocol = p.protocol
left join touched as t
    on
        c.model = t.model
        and c.source = t.source
        and c.month is not distinct from t.month
        and c.protocol = t.protocol;
